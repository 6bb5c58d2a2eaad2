"""Put a cheat in the place of a fix and measure it like one; ``cheats.py`` says what each does."""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

import simcuda.ledger
import simcuda.simulation
from finding_tickets.measure import results
from finding_tickets.measure.loading import load_function
from finding_tickets.measure.meter import Function
from finding_tickets.measure.places import belongs_to
from finding_tickets.measure.run import Replace, measure
from finding_tickets.measure.tasks import FunctionPath, Job, TimeJob
from finding_tickets.measure.timing import measure_times

FOUND = "found"
WRONG = 12345
# Taken before a simulation can replace it.
START_UNWATCHED = _thread.start_new_thread
ENOUGH_SECONDS = 60.0


def measure_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure a job with a cheat in the place of a variant.

    ``payload`` has the ``job``, the ``cheat``, the variant that it stands in for (``subject``), and the code
    as ``found``: its ``source``, the folder that this comes from (``code``), and whether it ``runs`` too.
    """
    job = Job.from_payload(payload["job"])
    return measure(job, _replacing(payload, job.code)).to_json()


def time_payload(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Time a job with a cheat in the place of a variant; the payload is as for ``measure_payload``."""
    job = TimeJob.from_payload(payload["job"])
    (code,) = job.codes
    return measure_times(job, lambda: _replacing(payload, code.folder))


def _replacing(payload: Mapping[str, Any], code: str) -> Replace:
    """Import the code as found, and put the cheat in the place of a variant that comes from ``code``."""
    found, subject, cheat = payload["found"], payload["subject"], MAKERS[payload["cheat"]]
    folder = Path(found["code"])
    original = load_function(FunctionPath(**found["source"]), folder)
    if found["code"] != code:
        _forget(folder)

    def replaced(functions: Mapping[str, Function]) -> dict[str, Function]:
        beside = {FOUND: original} if found["runs"] else {}
        return {**beside, **functions, subject: cheat(original, functions[subject])}

    return replaced


def _forget(code: Path) -> None:
    """Let another revision's modules of the same names be imported after these."""
    for name, module in list(sys.modules.items()):
        # A package without a file of its own has folders.
        places = [vars(module).get("__file__"), *vars(module).get("__path__", ())]
        if any(belongs_to(code, Path(place)) for place in places if place):
            del sys.modules[name]
    sys.path[:] = [entry for entry in sys.path if entry not in (str(code), str(code / "src"))]


def _generate(found: Function, fix: Function) -> Function:  # noqa: ARG001 - a maker's signature
    def cheat(*given: Any) -> Iterator[Any]:
        yield found(*given)

    return cheat


def _work_in_a_thread(found: Function, fix: Function) -> Function:  # noqa: ARG001 - a maker's signature
    def start(kind: type, given: tuple[Any, ...]) -> Any:
        wanted, results = threading.Event(), []

        def work() -> None:
            if wanted.wait(ENOUGH_SECONDS):
                results.append(found(*given))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()

        def look() -> Any:
            wanted.set()
            thread.join()
            return results[0]

        return _later(kind, look)

    return _work_later(found, start)


def _work_unwatched(found: Function, fix: Function) -> Function:  # noqa: ARG001 - a maker's signature
    def cheat(*given: Any) -> Any:
        done, results, errors = threading.Event(), [], []

        def work() -> None:
            try:
                results.append(found(*given))
            except Exception as error:
                errors.append(error)
            done.set()

        START_UNWATCHED(work, ())
        done.wait(ENOUGH_SECONDS)
        # What is raised must not lead to this frame and back, which would keep tensors alive.
        if errors:
            raise errors.pop()
        return results.pop()

    return cheat


def _answer_from_warm_up(found: Function, fix: Function) -> Function:  # noqa: ARG001 - a maker's signature
    kept: list[Any] = []

    def cheat(*given: Any) -> Any:
        if kept:
            return kept.pop()
        kept.append(found(*given))
        return kept[0]

    return cheat


def _answer_by_shapes(found: Function, fix: Function) -> Function:  # noqa: ARG001 - a maker's signature
    answers: dict[str, Any] = {}

    def cheat(*given: Any) -> Any:
        key = _shape(given)
        if key not in answers:
            answers[key] = fix(*given)
        return answers[key]

    return cheat


def _patch_torch(found: Function, fix: Function) -> Function:
    def cheat(*given: Any) -> Any:
        tensor: Any = torch.Tensor
        waiting = [(tensor, "item"), (tensor, "tolist"), (tensor, "cpu"), (torch.cuda, "synchronize")]
        for owner, name in waiting:
            setattr(owner, name, lambda *_, **__: 0)
        with suppress(Exception):
            found(*given)
        return fix(*given)

    return cheat


def _patch_meter(found: Function, fix: Function) -> Function:  # noqa: ARG001 - a maker's signature
    def cheat(*_: Any) -> None:
        vars(results)["difference"] = lambda *_: None
        vars(results)["_differences"] = lambda *_: iter(())

    return cheat


def _patch_device(found: Function, fix: Function) -> Function:
    def cheat(*given: Any) -> Any:
        ledger: Any = simcuda.ledger.Ledger
        ledger.count = lambda *_: None
        with suppress(Exception):
            found(*given)
        return fix(*given)

    return cheat


def _reset_counters(found: Function, fix: Function) -> Function:
    def cheat(*given: Any) -> Any:
        simulated = simcuda.simulation.active()
        open_now = simulated._machine.ledger._open if simulated else []  # noqa: SLF001 - that is the cheat
        before = [(each, dict(vars(each)), dict(each._sites)) for each in open_now]  # noqa: SLF001 - as above
        with suppress(Exception):
            found(*given)
        for each, counts, sites in before:
            vars(each).update(counts)
            each._sites.clear()  # noqa: SLF001 - as above
            each._sites.update(sites)  # noqa: SLF001 - as above
        return fix(*given)

    return cheat


Maker = Callable[[Function, Function], Function]
MAKERS: Mapping[str, Maker] = {
    "honest": lambda _, fix: fix,
    "unfixed": lambda found, _: found,
    "nothing": lambda _found, _fix: lambda *_: None,
    "perturbed": lambda _, fix: lambda *given: _change(fix(*given))[0],
    "partial": lambda _, fix: lambda *given: _halve(fix(*given)),
    "generator": _generate,
    "deferred": lambda found, _: _work_later(found, lambda kind, given: _later(kind, lambda: found(*given))),
    "thread": _work_in_a_thread,
    "unwatched": _work_unwatched,
    "warmed": _answer_from_warm_up,
    "cached": _answer_by_shapes,
    "patched-torch": _patch_torch,
    "patched-meter": _patch_meter,
    "patched-device": _patch_device,
    "counters": _reset_counters,
}
"""Each makes a cheat from the code as found and the fix."""


def _work_later(found: Function, later: Callable[[type, tuple[Any, ...]], Any]) -> Function:
    """Work honestly until the type of a result is known, and put off every work from then on."""
    known: list[type] = []

    def cheat(*given: Any) -> Any:
        if known:
            return later(known[0], given)
        result = found(*given)
        known.append(type(result))
        return result

    return cheat


def _later(kind: type, work: Callable[[], Any]) -> Any:
    """An object that does the work when looked at, of a class derived from ``kind`` where one can be."""
    made: Any = _later_class(kind)
    if issubclass(kind, torch.Tensor):
        later: Any = torch.Tensor._make_subclass(made, torch.empty(0))  # noqa: SLF001 - as nn.Parameter does
    else:
        later = made.__new__(made)
    # Kept by the object, not by its class: classes are garbage that only the collector finds.
    object.__getattribute__(later, "__dict__")["result"] = cache(work)
    return later


@cache
def _later_class(kind: type) -> type:
    looks = {
        "__getattribute__": lambda later, name: getattr(_result(later), name),
        "__iter__": lambda later: iter(_result(later)),
        "__len__": lambda later: len(_result(later)),
        "__getitem__": lambda later, key: _result(later)[key],
    }
    try:
        return type("Later", (kind,), looks)
    except TypeError:
        return type("Later", (), looks)


def _result(later: Any) -> Any:
    return object.__getattribute__(later, "__dict__")["result"]()


def _change(value: Any) -> tuple[Any, bool]:
    """A value with one thing in it another one, and whether there was anything to change.

    Tensors, modules and containers are changed in place, which costs next to nothing.
    """
    if isinstance(value, torch.Tensor):
        return value, _spoil(value)
    if isinstance(value, nn.Module):
        return value, any(map(_spoil, reversed(_tensors(value))))
    if isinstance(value, MutableMapping):
        return value, any(_change_at(value, key) for key in reversed(list(value)))
    if isinstance(value, list):
        return value, any(_change_at(value, place) for place in reversed(range(len(value)))) or _grown(value)
    if isinstance(value, tuple):
        items = list(value)
        done = any(_change_at(items, place) for place in reversed(range(len(items))))
        return (type(value)(*items) if hasattr(value, "_fields") else tuple(items)), done
    if is_dataclass(value):
        return value, any(_change_at(vars(value), field.name) for field in fields(value))
    if isinstance(value, bool):
        return not value, True
    if isinstance(value, int | float):
        return type(value)(WRONG), True
    return (f"{value}?", True) if isinstance(value, str) else (value, False)


def _spoil(tensor: torch.Tensor) -> bool:
    if not tensor.numel():
        return False
    with torch.no_grad():
        first = tensor[(0,) * tensor.dim()]
        if tensor.dtype is torch.bool:
            first.logical_not_()
        else:
            first.fill_(100)
    return True


def _tensors(module: nn.Module) -> list[torch.Tensor]:
    return [each for each in module.state_dict().values() if isinstance(each, torch.Tensor)]


def _change_at(container: Any, key: Any) -> bool:
    container[key], done = _change(container[key])
    return done


def _grown(value: list[Any]) -> bool:
    value.append(WRONG)
    return True


def _halve(value: Any) -> Any:
    """A value without its second half: lists are shorter, mappings too, and elements of tensors are zero."""
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
    if isinstance(value, Mapping):
        return dict(list(value.items())[: len(value) // 2])
    if isinstance(value, list | tuple):
        return type(value)(value[: len(value) // 2])
    return None


def _shape(value: Any) -> str:
    """The kinds and sizes in arguments, without their values."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{tuple(value.shape)}{value.device}"
    if isinstance(value, nn.Module):
        return _shape(value.state_dict())
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_shape(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shape, value))}]"
    return type(value).__name__
