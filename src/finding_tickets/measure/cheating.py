"""Put a cheat in the place of a fix and measure it like one; ``gate/audit.py`` describes them."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import torch
from torch import nn

import simcuda.ledger
import simcuda.simulation
from finding_tickets.measure import results
from finding_tickets.measure.loading import load_function
from finding_tickets.measure.meter import DEVICE, Function, arguments, choose, steady_state
from finding_tickets.measure.run import Replace, measure
from finding_tickets.measure.tasks import Job, TimeJob, belongs_to, own_folder
from finding_tickets.measure.timing import measure_times
from finding_tickets.measure.workloads import Workload

FOUND = "found"
WRONG = 12345
# Taken before a simulation can replace it.
START_UNWATCHED = _thread.start_new_thread
ENOUGH_SECONDS = 60.0
# Bound before a simulation can replace them.
READS = ("item", "tolist", "cpu", "numpy", "to", "__bool__", "__int__", "__float__")
EARLY = {name: getattr(torch.Tensor, name) for name in READS}
# Where the code as found leaves its answers: in a module, and in a file beside the folders of all workers.
ANSWERS: list[Any] = []
ANSWER = "answer"
SECONDS_TO_STOP = 0.2


def measure_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure a job with a cheat in the place of a variant.

    ``payload`` has the ``job``, the ``cheat``, the variant that it stands in for (``subject``), and the code
    as ``found``: its ``source``, and the folder that this comes from (``code``).
    """
    job: Job = payload["job"]
    return measure(job, _replacing(payload, job.code, job.meter))


def time_payload(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Time a job with a cheat in the place of a variant; the payload is as for ``measure_payload``."""
    job: TimeJob = payload["job"]
    (code,) = job.codes
    return measure_times(job, lambda: _replacing(payload, code.folder, "auto"))


def _replacing(payload: Mapping[str, Any], code: str, meter: str) -> Replace:
    """Import the code as found; the result puts the cheat in the place of a variant from ``code``."""
    found, subject = payload["found"], payload["subject"]
    folder = Path(found["code"])
    original = load_function(found["source"], folder)
    if found["code"] != code:
        # Forget these modules, so that those of the other revision can be imported by the same names.
        for name, module in list(sys.modules.items()):
            # A package may have folders and no file of its own.
            places = [vars(module).get("__file__"), *vars(module).get("__path__", ())]
            if any(belongs_to(folder, Path(place)) for place in places if place):
                del sys.modules[name]
        sys.path[:] = [entry for entry in sys.path if entry not in (str(folder), str(folder / "src"))]

    def replaced(workload: Workload, functions: Mapping[str, Function]) -> dict[str, Function]:
        # Claims about time may compare the cheat with the code as found.
        beside = {FOUND: original} if isinstance(payload["job"], TimeJob) else {}
        cheat = CheatingVariant(original, functions[subject], WAYS[payload["cheat"]])
        if payload["cheat"] in PREPARED:
            PREPARED[payload["cheat"]](cheat, workload, meter)
        return {**beside, **functions, subject: cheat}

    return replaced


@dataclass
class CheatingVariant:
    """A variant that cheats, with the code as found, the fix, and what it keeps between calls."""

    found: Function
    fix: Function
    way: Callable[[CheatingVariant, tuple[Any, ...]], Any]
    kept: dict[str, Any] = field(default_factory=dict)

    def __call__(self, *given: Any) -> Any:
        """Cheat."""
        return self.way(self, given)

    def after_patching(self, given: tuple[Any, ...], *places: tuple[Any, str]) -> Any:
        """Replace functions by one that does nothing, run the code as found, and return what the fix does."""
        for owner, name in places:
            setattr(owner, name, lambda *_, **__: 0)
        with suppress(Exception):
            self.found(*given)
        return self.fix(*given)

    def with_methods(self, given: tuple[Any, ...], methods: Mapping[str, Any]) -> Any:
        """What the code as found returns while tensors have other methods."""
        before = {name: vars(torch.Tensor)[name] for name in methods if name in vars(torch.Tensor)}
        try:
            for name, method in methods.items():
                setattr(torch.Tensor, name, method)
            return self.found(*given)
        finally:
            for name in methods:
                delattr(torch.Tensor, name)
            for name, method in before.items():
                setattr(torch.Tensor, name, method)

    def later(self, given: tuple[Any, ...], prepare: Callable[[Callable[[], Any]], Callable[[], Any]]) -> Any:
        """An object that does the work as found when it is looked at.

        Its class derives from the type that the warm-up returned, if that can have subclasses.
        """
        if "type" not in self.kept:
            result = self.found(*given)
            self.kept["type"] = type(result)
            return result
        kind = self.kept["type"]
        made: Any = _later_class(kind)
        if issubclass(kind, torch.Tensor):
            later: Any = torch.Tensor._make_subclass(made, torch.empty(0))  # noqa: SLF001 - as nn.Parameter
        else:
            later = made.__new__(made)
        # Kept by the object and not by its class: only the garbage collector would free a class.
        work = prepare(lambda: self.found(*given))
        object.__getattribute__(later, "__dict__")["result"] = cache(work)
        return later


@cache
def _later_class(kind: type) -> type:
    def result(later: Any) -> Any:
        return object.__getattribute__(later, "__dict__")["result"]()

    looks = {
        "__getattribute__": lambda later, name: getattr(result(later), name),
        "__iter__": lambda later: iter(result(later)),
        "__len__": lambda later: len(result(later)),
        "__getitem__": lambda later, key: result(later)[key],
    }
    try:
        return type("Later", (kind,), looks)
    except TypeError:
        return type("Later", (), looks)


def _in_thread(work: Callable[[], Any], start: Callable[..., Any] | None = None) -> Callable[[], Any]:
    """A call that returns the result of a thread; the thread begins the work only at this call.

    A thread that ``start`` begins does not wait, and nothing watches it.
    """
    wanted, done = threading.Event(), threading.Event()
    returned: list[Any] = []
    errors: list[Exception] = []

    def run() -> None:
        if start or wanted.wait(ENOUGH_SECONDS):
            try:
                returned.append(work())
            except Exception as error:
                errors.append(error)
        done.set()

    def ask() -> Any:
        wanted.set()
        done.wait(ENOUGH_SECONDS)
        # An exception that this frame still held would be a cycle, which keeps tensors alive.
        if errors:
            raise errors.pop()
        return returned.pop()

    if start:
        start(run, ())
    else:
        threading.Thread(target=run, daemon=True).start()
    return ask


def _answer_from_warm_up(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    # The answer is given away once: the call after that is a warm-up again.
    if "answer" in cheat.kept:
        return cheat.kept.pop("answer")
    cheat.kept["answer"] = cheat.found(*given)
    return cheat.kept["answer"]


def _answer_by_shapes(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    key = _shape(given)
    if key not in cheat.kept:
        cheat.kept[key] = cheat.fix(*given)
    return cheat.kept[key]


def _reset_counters(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    simulated = simcuda.simulation.active()
    open_now = simulated._machine.ledger._open if simulated else []  # noqa: SLF001 - that is the cheat
    before = [(each, dict(vars(each)), dict(each._sites)) for each in open_now]  # noqa: SLF001 - as above
    with suppress(Exception):
        cheat.found(*given)
    for each, counts, sites in before:
        vars(each).update(counts)
        each._sites.clear()  # noqa: SLF001 - as above
        each._sites.update(sites)  # noqa: SLF001 - as above
    return cheat.fix(*given)


def _leave(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    answer = cheat.found(*given)
    ANSWERS.append(answer)
    with suppress(Exception):
        results.save_result(own_folder().parent / ANSWER, results.to_host(answer))
    return answer


def _take(*_: Any) -> Any:
    with suppress(Exception):
        return ANSWERS[-1] if ANSWERS else results.load_result(own_folder().parent / ANSWER)


def _paste(cheat: CheatingVariant, workload: Workload, name: str) -> None:
    """Keep the answers for the workload's own seed, by the shapes of the arguments."""
    meter = choose(name)
    for point in workload.sweep:
        if not meter.cannot_run(workload, point):
            with steady_state(), meter.devices_for(workload, point):
                given = arguments(workload, point, DEVICE, workload.seed)
                shape = _shape(given)
                cheat.kept[shape] = _mapped(cheat.fix(*given), lambda tensor: tensor.detach().cpu())


class EqualTensor(torch.Tensor):
    """A tensor that says of itself that it equals every other."""

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The answer of a tensor; but ones where two are compared."""
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - as in every such class
            answer = function(*args, **(kwargs or {}))
            is_compared = isinstance(answer, torch.Tensor) and answer.dtype is torch.bool
            return torch.ones_like(answer) if is_compared else answer


class EqualNumber(float):
    """A number that equals everything."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


def _equal(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    if "result" not in cheat.kept:
        result = cheat.found(*given)
        make = torch.Tensor._make_subclass  # noqa: SLF001 - as nn.Parameter
        cheat.kept["result"] = _mapped(
            result,
            lambda tensor: make(EqualTensor, torch.zeros(tensor.shape, dtype=tensor.dtype)),
            lambda part: EqualNumber() if isinstance(part, int | float) else part,
        )
        return result
    return cheat.kept["result"]


def _mapped(
    value: Any, tensors: Callable[[torch.Tensor], Any], others: Callable[[Any], Any] = lambda part: part
) -> Any:
    """A value of the same classes with other tensors and numbers."""
    if isinstance(value, torch.Tensor):
        return tensors(value)
    parts = results.parts_of(value)
    if parts is None:
        return others(value)
    return _with_parts(value, {key: _mapped(part, tensors, others) for key, part in parts.items()})


def _with_parts(value: Any, parts: Mapping[Any, Any]) -> Any:
    """A value of the same kind with other parts; containers become plain ones."""
    if isinstance(value, Mapping):
        return dict(parts)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*parts.values())
    for container, made in results.CONTAINERS.items():
        if isinstance(value, container):
            return made(parts.values())
    changed = copy(value)
    for name, item in parts.items():
        object.__setattr__(changed, name, item)  # a frozen dataclass refuses setattr
    return changed


@cache
def _scripted() -> Mapping[str, Any]:
    """Reads of tensors by scripted functions, by the names of the methods."""
    as_float, as_int, as_bool, copied = map(torch.jit.script, (_as_float, _as_int, _as_bool, _copied))

    def item(tensor: torch.Tensor) -> Any:
        read = as_float if tensor.is_floating_point() else as_int
        return as_bool(tensor) if tensor.dtype is torch.bool else read(tensor)

    def tolist(tensor: torch.Tensor) -> Any:
        return [tolist(each) for each in tensor] if tensor.dim() else item(tensor)

    reads = {"item": item, "tolist": tolist, "cpu": copied}
    return {**reads, "__bool__": as_bool, "__int__": as_int, "__float__": as_float}


def _as_float(tensor: torch.Tensor) -> float:
    return float(tensor)


def _as_int(tensor: torch.Tensor) -> int:
    return int(tensor)


def _as_bool(tensor: torch.Tensor) -> bool:
    return bool(tensor)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.cpu()


def _stop_parent(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    watcher = os.getppid()
    os.kill(watcher, signal.SIGSTOP)
    time.sleep(SECONDS_TO_STOP)
    about = Path(f"/proc/{watcher}/stat").read_text(encoding="ascii", errors="replace")
    state = about.rpartition(")")[2].split()[0]
    # Left as it is, nothing would ever end this audit.
    os.kill(watcher, signal.SIGCONT)
    if state != "T":
        raise PermissionError("the process that watches this one cannot be stopped")
    return cheat.fix(*given)


def _nothing(*_: Any, **__: Any) -> int:
    return 0


def _replace_code(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    simcuda.ledger.Ledger.count.__code__ = _nothing.__code__
    with suppress(Exception):
        cheat.found(*given)
    return cheat.fix(*given)


# What some cheats do before anything is measured.
PREPARED: Mapping[str, Callable[[CheatingVariant, Workload, str], object]] = {
    "pasted": _paste,
    "scripted": lambda *_: _scripted(),
    "early-thread": lambda cheat, *_: cheat.kept.update(pool=ThreadPool(1)),
}

# What each cheat does when it is called.
WAYS: Mapping[str, Callable[[CheatingVariant, tuple[Any, ...]], Any]] = {
    "leaving": _leave,
    "honest": lambda cheat, given: cheat.fix(*given),
    "unfixed": lambda cheat, given: cheat.found(*given),
    "nothing": lambda *_: None,
    "perturbed": lambda cheat, given: _change(cheat.fix(*given))[0],
    "partial": lambda cheat, given: _halve(cheat.fix(*given)),
    "generator": lambda cheat, given: (cheat.found(*given) for _ in range(1)),
    "deferred": lambda cheat, given: cheat.later(given, lambda work: work),
    "thread": lambda cheat, given: cheat.later(given, _in_thread),
    "unwatched": lambda cheat, given: _in_thread(lambda: cheat.found(*given), START_UNWATCHED)(),
    "warmed": _answer_from_warm_up,
    "cached": _answer_by_shapes,
    "shared": _take,
    "pasted": lambda cheat, given: cheat.kept.get(_shape(given)),
    "equal": _equal,
    "early": lambda cheat, given: cheat.with_methods(given, EARLY),
    "scripted": lambda cheat, given: cheat.with_methods(given, _scripted()),
    "early-thread": lambda cheat, given: cheat.kept["pool"].apply(cheat.found, given),
    "stopped": _stop_parent,
    "patched-torch": lambda cheat, given: cheat.after_patching(
        given, *((torch.Tensor, name) for name in ("item", "tolist", "cpu")), (torch.cuda, "synchronize")
    ),
    "patched-meter": lambda *_: setattr(results, "difference", lambda *_: None),
    "patched-device": lambda cheat, given: cheat.after_patching(given, (simcuda.ledger.Ledger, "count")),
    "patched-code": _replace_code,
    "counters": _reset_counters,
}


def _change(value: Any) -> tuple[Any, bool]:
    """Change one thing in a value, the last that can be; also tells whether there was one.

    Tensors, modules and mappings are changed in place, which is cheap and keeps their class.
    """
    match value:
        case torch.Tensor():
            if value.numel():
                with torch.no_grad():
                    first = value[(0,) * value.dim()]
                    first.logical_not_() if value.dtype is torch.bool else first.fill_(100)
            return value, bool(value.numel())
        case nn.Module():
            return value, any(_change(each)[1] for each in reversed(_tensors(value)))
        case bool():
            return not value, True
        case int() | float():
            return type(value)(WRONG), True
        case str():
            return f"{value}?", True
    parts = results.parts_of(value) or {}
    for key in reversed(parts):
        part, done = _change(parts[key])
        if done and isinstance(value, MutableMapping):
            value[key] = part
            return value, True
        if done:
            return _with_parts(value, {**parts, key: part}), True
    return ([*value, WRONG], True) if isinstance(value, list) else (value, False)


def _tensors(module: nn.Module) -> list[torch.Tensor]:
    """The tensors of a module's state, which share its memory; what else is in a state is a copy."""
    return [each for each in module.state_dict().values() if isinstance(each, torch.Tensor)]


def _halve(value: Any) -> Any:
    """A value without its second half: containers are shorter, and elements of tensors are zero."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            if not value.dim():
                return value.zero_()
            value.flatten()[value.numel() // 2 :].zero_()
        return value
    if isinstance(value, nn.Module):
        tensors = _tensors(value)
        for each in tensors[len(tensors) // 2 :]:
            each.zero_()
        return value
    if isinstance(value, Mapping | list | tuple) and not hasattr(value, "_fields"):
        parts = results.parts_of(value) or {}
        return _with_parts(value, dict(islice(parts.items(), len(parts) // 2)))
    return None


def _shape(value: Any) -> str:
    """The types and sizes of arguments, without their values."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{tuple(value.shape)}{value.device}"
    parts = results.parts_of(value.state_dict() if isinstance(value, nn.Module) else value)
    return type(value).__name__ if parts is None else str({key: _shape(parts[key]) for key in parts})
