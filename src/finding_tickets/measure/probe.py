"""Run a script, a module, a function or a test under a meter, as the user names it.

Only a test needs pytest, which is not a dependency.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.util
import inspect
import linecache
import os
import re
import runpy
import signal
import stat
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

import simcuda
from finding_tickets.claims.check import ONCE, at_text, named_at
from finding_tickets.claims.laws import Fit, Place, fit_metrics, fit_sites, join_ranges
from finding_tickets.ground.git import FOREIGN_FOLDERS
from finding_tickets.measure.calls import (
    CallChains,
    Callers,
    CallMeter,
    CallsRun,
    Line,
    statement_at,
)
from finding_tickets.measure.loading import (
    import_from,
    imported_files,
    load_function,
    load_workload,
)
from finding_tickets.measure.meter import (
    AllowedPlace,
    Function,
    Meter,
    OpenDevice,
    VariantRun,
    choose,
    operation_costs,
    torch_version,
)
from finding_tickets.measure.outcomes import (
    RESULT,
    keeping_outcome,
    save_outcome,
    seed_everything,
)
from finding_tickets.measure.run import JobReport, check_declared, check_repeated, run
from finding_tickets.measure.state import unpatched
from finding_tickets.measure.tasks import (
    COPY,
    CannotMeasureError,
    FunctionPath,
    RunJob,
    WrongTargetError,
    belongs_to,
    describe,
    is_out_of_host_memory,
    own_folder,
    place,
    portable,
)
from finding_tickets.measure.workloads import Point, Workload
from simcuda.ledger import (
    allocation_listeners,
    attributing_to,
    frame_listeners,
    listening,
    noting_operations,
)
from simcuda.measurement import HEAVIEST_FIRST

# Stands in reports for the name of a variant.
NAME = "target"
END_AGAIN_SECONDS = 0.5
# Of several tests these metrics do not add up: the largest counts.
LARGEST = {
    "largest_allocation",
    "peak_bytes",
    "peak_allocated_bytes",
    "host_peak_bytes",
    "raised",
}
# Leave no cache behind, and do not rewrite assertions: to explain one that fails, pytest itself would wait
# for tensors.
PYTEST_OPTIONS = ("-p", "no:cacheprovider", "--assert=plain", "--tb=no")


def run_target(job: RunJob) -> JobReport:
    """Run a target and count what it costs, under the name ``NAME``; with ``within`` by ``CallsRun``.

    A function is warmed up first, like in a verifier, so that it costs what a verification will find.
    Scripts, modules and tests run once, as they are.

    Raises:
        WrongTargetError: The target or ``within`` cannot be found, or the target not be called like that.
        CannotMeasureError: The meter cannot measure here, or there was nothing to measure.
    """
    root = Path(job.code)
    if job.folder:
        os.chdir(job.folder)
    import_from(root)
    meter = choose(job.meter, job.compiling)
    if job.kind == "function":
        with _time_limit(job.seconds, TimeoutError):
            return _load_and_run(job, root, meter)
    calls = CallMeter(meter, job.within, root, job.after) if job.within else None
    # Scripts, modules and tests run without a warm-up.
    with (calls or meter).devices(job.devices) as gpu, unpatched(only_ours=True):
        done = (
            run_node(gpu, job, root)
            if job.kind == "test"
            else _run_program(gpu, job, root)
        )
    done = calls.per_call(done) if calls else done
    return JobReport(
        meter=meter.name, device=meter.device, sweep=(ONCE,), runs={NAME: [done]}
    )


def probe_payload(job: RunJob) -> dict[str, Any]:
    """Return the fields of a ``Probed``, or why the target is ``wrong``.

    The sites are sorted, heaviest first.
    """
    root = Path(job.code)
    callers = Callers(root)
    try:
        with (
            listening(frame_listeners, callers.note),
            register_optimizer_step_post_hook(callers.note_step),
            noting_operations(job.operations),
            _own_lines(root, {}, callers) if job.own_lines else nullcontext(),
        ):
            report = run_target(job)
    except WrongTargetError as error:
        return {"wrong": str(error)}
    runs = report.runs[NAME]
    # One run has values and no laws.
    has_laws = len(runs) > 1
    fits = fit_metrics(runs) if has_laws else {}
    # All output of this process goes to one file, whose size is reported below.
    sys.stdout.flush()
    sys.stderr.flush()
    return {
        "target": job.target,
        "kind": job.kind,
        "meter": report.meter,
        "torch": torch_version(),
        "device": report.device,
        "points": [each.at for each in runs],
        "metrics": {
            name: _cost(runs, name, fits.get(name))
            for name in (runs[0].metrics if runs else ())
        },
        "sites": _sites(runs, fit_sites(runs) if has_laws else {}, root, callers),
        "calls": [
            {"counted": each.calls, "apart": each.apart, "differ": each.differs}
            for each in runs
            if isinstance(each, CallsRun)
        ],
        "errors": [
            f"at {at_text(each.at)}: {each.error}" if has_laws else each.error
            for each in runs
            if each.error
        ],
        "not_measured": [
            f"{at_text(each['at'])}: {each['why']}" for each in report.not_measured
        ],
        "operations": operation_costs(runs[-1]) if runs else [],
        "unknown": sorted({name for each in runs for name in each.unknown}),
        "approximate": sorted({name for each in runs for name in each.approximate}),
        "printed": os.fstat(sys.__stdout__.fileno()).st_size if sys.__stdout__ else 0,
        "function": _as_in_ticket(job.target, root) if job.kind == "function" else "",
        "files": sorted({*imported_files(root), *_named_files(root, job)}),
    }


def run_payload(job: RunJob) -> dict[str, Any]:
    """Run the target of a ticket at one point, and return the fields of a ``MeasuredRun``.

    Code that is not the work tree's runs in a copy: it may write files next to itself, and the
    next run must not see them.

    Raises:
        CannotMeasureError: There was nothing to measure, or it was not the code that is meant.
    """
    torch.set_num_threads(1)
    root, work_tree = Path(job.code), Path(job.work_tree)
    (at,) = job.sweep or (ONCE,)
    if root != work_tree:
        root = own_folder() / COPY
        # What is installed to be edited, or named in PYTHONPATH, is the copy's too.
        sys.path[:] = [_entry_in_copy(entry, work_tree, root) for entry in sys.path]
        for name in job.data:
            _link_data(work_tree / name, root / name, job.stated)
    os.chdir(root)
    try:
        largest: dict[Line, int] = {}
        callers = Callers(root)
        chains = CallChains(partial(_is_own, root))
        with (
            noting_operations(job.operations),
            listening(frame_listeners, chains.note)
            if job.with_chains
            else nullcontext(),
            _own_lines(root, largest, callers) if job.own_lines else nullcontext(),
        ):
            report = run_target(replace(job, code=str(root)))
    except WrongTargetError as error:
        raise CannotMeasureError(f"{error.message} ({job.stated})") from None
    except CannotMeasureError as error:
        text = str(error).removeprefix(f"{named_at(NAME, at)}: ")
        # What is wrong with a function to count in is wrong in the ticket.
        said = f" ({job.stated})" if job.within and text.startswith(job.within) else ""
        raise CannotMeasureError(text + said) from None
    if root != work_tree and (foreign := imported_files(work_tree)):
        raise CannotMeasureError(
            f"{foreign[0]} was imported from the work tree, where it is installed from"
        )
    (run,) = report.runs[NAME]
    check_declared([run], ())
    ending = run.error
    missing = re.search(r"No such file or directory: '([^']+)'", ending or "")
    if missing and root != work_tree and (work_tree / missing[1]).exists():
        ending = f"{ending}, but in the work tree: what git has not, a ticket names under data:"
    if isinstance(run, CallsRun) and run.differs and not job.own_lines:
        raise CannotMeasureError(f"{job.within}: {run.differs}")
    return {
        "meter": report.meter,
        "torch": torch_version(),
        "device": report.device,
        **{
            name: getattr(run, name)
            for name in ("metrics", "unknown", "approximate", "ranges")
        },
        "error": ending,
        "at": at,
        "operations": operation_costs(run),
        "sites": [(*place, count) for place, count in run.sites.items()],
        "allowed": [
            (*place, count) for place, count in run.allowed.items() if job.own_lines
        ],
        "largest": [
            (portable(file, root), *rest, nbytes)
            for (file, *rest), nbytes in largest.items()
        ],
        "repeated": [(portable(file, root), *rest) for file, *rest in callers.repeated],
        "chains": chains.texts(root),
        **(_calls(run) if isinstance(run, CallsRun) and job.own_lines else {}),
    }


def _link_data(there: Path, here: Path, stated: str) -> None:
    """Let a copy of the code see data of the work tree.

    Raises:
        CannotMeasureError: There is none.
    """
    if not there.exists():
        raise CannotMeasureError(f"data: there is no {there} ({stated})")
    if not here.exists():
        here.parent.mkdir(parents=True, exist_ok=True)
        here.symlink_to(there)


def _calls(run: CallsRun) -> dict[str, Any]:
    """Return the different costs of calls, and for each call the place of its cost among them."""
    places: dict[str, int] = {}
    costs: list[dict[str, Any]] = []
    order = []
    for call in run.each:
        cost = {
            "metrics": call.metrics,
            "ranges": call.ranges,
            "sites": [(*place, count) for place, count in call.sites.items()],
            "allowed": [(*place, count) for place, count in call.allowed.items()],
        }
        key = repr(cost)
        if key not in places:
            places[key] = len(costs)
            costs.append(cost)
        order.append(places[key])
    return {"calls": costs, "order": order}


def _is_own(root: Path, file: str) -> bool:
    path = Path(file).resolve()
    return belongs_to(root, path) and not FOREIGN_FOLDERS.intersection(
        path.relative_to(root).parts
    )


@contextmanager
def _own_lines(
    root: Path, largest: dict[Line, int], callers: Callers
) -> Iterator[None]:
    """Attribute costs to lines of the repository, with the largest request of each and who called it.

    A folder for code of others, such as ``vendor``, counts like an installed package.
    """

    def note(nbytes: int, line: Line) -> None:
        largest[line] = max(nbytes, largest.get(line, 0))

    with (
        attributing_to(partial(_is_own, root)),
        listening(allocation_listeners, note),
        listening(frame_listeners, callers.note),
    ):
        yield


def _named_files(root: Path, job: RunJob) -> Iterator[str]:
    """The repository's files that are run, which no import tells, or named in arguments."""
    words = [
        word
        for text in (job.target, *job.arguments)
        for word in (text, text.partition("=")[2])
    ]
    if job.kind == "module":
        spec = importlib.util.find_spec(job.target)
        if spec and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{job.target}.__main__")
        words.append((spec and spec.origin) or "")
    for word in filter(None, words):
        file = Path(root, word.partition("::")[0]).resolve()
        if file.is_file() and belongs_to(root, file):
            yield file.relative_to(root).as_posix()


def _entry_in_copy(entry: str, work_tree: Path, copy: Path) -> str:
    """An entry of the path for modules, in a copy of the work tree where it is the work tree's own."""
    path = Path(entry)
    return (
        str(copy / path.relative_to(work_tree))
        if entry and belongs_to(work_tree, path)
        else entry
    )


def _function_of(job: RunJob, root: Path) -> Function:
    module, _, name = job.target.rpartition(":")
    try:
        return load_function(FunctionPath(module, name), root)
    except CannotMeasureError as error:
        raise WrongTargetError(str(error)) from None


def _load_and_run(job: RunJob, root: Path, meter: Meter) -> JobReport:
    """Load a function, and run it at every point."""
    if meter.name != "simulated":
        return _run_function(job, root, meter, _function_of(job, root))
    # As on a GPU, a module may ask for the device, and use it, when it is imported.
    with meter.devices(job.devices) as gpu:
        function = _function_of(job, root)
        if gpu.live_bytes():
            return _run_function(job, root, OpenDevice(meter, gpu), function)
    return _run_function(job, root, meter, function)


def _run_function(
    job: RunJob, root: Path, meter: Meter, function: Function
) -> JobReport:
    """Run a function at every point of its sweep, or with what a verifier builds."""
    if job.within:
        meter = CallMeter(meter, job.within, root, job.after)
    by_name = job.sweep[0] if job.sweep else {}
    try:
        signature = inspect.signature(function)
    except ValueError:
        pass  # A function without a signature can only be tried.
    else:
        try:
            if not job.verifier:
                signature.bind(**by_name)
        except TypeError as error:
            names = [
                name
                for name, each in signature.parameters.items()
                if each.default is each.empty
            ]
            if names[:1] == ["self"]:
                raise WrongTargetError(
                    f"{job.target}: is a method, and there is no object to call it on",
                    f"probe a script or a test that calls it, with --within {job.target}",
                ) from None
            needed = (
                " ".join(f"--sweep {name}=1,2,5,9" for name in names) or "no --sweep"
            )
            raise WrongTargetError(
                f"{job.target}: {error}", f"it takes {needed}, or a --verifier"
            ) from None
    if job.verifier:
        return run(load_workload(job.verifier, root), {NAME: function}, meter, root)
    workload = Workload(
        ticket=job.target,
        build=lambda point, _device, _generator: (dict(point) if job.sweep else {},),
        sweep=[Point(**at) for at in job.sweep or (ONCE,)],
        devices=lambda _: job.devices,
    )

    def call(values: Mapping[str, int]) -> Any:
        if job.keeps:
            seed_everything()
        return function(**values)

    def keep(_: int, done: VariantRun) -> None:
        save_outcome(job.keeps, {RESULT: done.result})

    functions: dict[str, Function] = {NAME: call}
    report = run(workload, functions, meter, root, keep=keep if job.keeps else None)
    if job.repeated:
        check_repeated(report, workload, functions, meter, root)
    return report


def _as_in_ticket(target: str, root: Path) -> str:
    """Return how a ticket names a function: by a file of the repository if possible, else by its module."""
    module, _, name = target.rpartition(":")
    file = getattr(sys.modules.get(module), "__file__", None)
    return (
        f"{portable(file, root)}:{name}"
        if file and belongs_to(root, Path(file))
        else target
    )


def _run_program(gpu: simcuda.Gpu, job: RunJob, root: Path) -> VariantRun:
    """Run a script or a module as ``python script.py`` or ``python -m module`` would."""
    is_module = job.kind == "module"
    script = str(root / job.target)
    sys.path.insert(0, str(Path.cwd() if is_module else Path(script).parent))
    sys.argv = [job.target if is_module else script, *job.arguments]
    if is_module:
        try:
            known = importlib.util.find_spec(job.target) is not None
        except ModuleNotFoundError as error:
            # If a package on the way imports something that is missing, running it reports that.
            known = not f"{job.target}.".startswith(f"{error.name}.")
        if not known:
            raise WrongTargetError(f"there is no module {job.target}")
    ending: str | None = None
    before = _reachable_bytes(gpu)
    with keeping_outcome(job.keeps, root), gpu.measure() as counted:
        try:
            with _exit_handlers(root), _time_limit(job.seconds, _TimeIsUpError):
                if is_module:
                    runpy.run_module(job.target, run_name="__main__", alter_sys=True)
                else:
                    runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            # Many programs end with a call of sys.exit also if all is well.
            if end.code not in (None, 0):
                said = _last_error() if isinstance(end.code, int) else ""
                ending = (
                    f"{place(end, root) or 'it'} called sys.exit({end.code!r}){said}"
                )
        except _TimeIsUpError as end:
            ending = f"{end}, at {place(end, root) or 'no line of its own'}"
        except Exception as error:
            if is_out_of_host_memory(error):
                raise
            ending = describe(error, root)
    return VariantRun.of(counted, _reachable_bytes(gpu) - before, root, ONCE, ending)


class _TimeIsUpError(BaseException):
    """Ends a program that runs for too long; like an interrupt, programs do not catch it as an error."""


@contextmanager
def _time_limit(seconds: float, error: type[BaseException]) -> Iterator[None]:
    """Raise an error in the block after so many seconds, or when an alarm is sent; 0 for no limit.

    A program that cannot be stopped like that is killed some time later, and nothing of it is counted.
    """
    if not seconds:
        # The alarms of what runs are its own.
        yield
        return
    begin = time.monotonic()

    def end(*_: object) -> None:
        # Again and again: what is raised in a finalizer is ignored.
        signal.setitimer(signal.ITIMER_REAL, END_AGAIN_SECONDS, END_AGAIN_SECONDS)
        raise error(f"still running after {time.monotonic() - begin:.0f} s")

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def _exit_handlers(root: Path) -> Iterator[None]:
    """Run what code of the repository registers by ``atexit`` as the block ends, as a program does."""
    kept = ExitStack()
    register: Any = atexit.register

    def registered(function: Any, /, *args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1).f_code.co_filename  # noqa: SLF001 - who registers it
        if not belongs_to(root, Path(caller).resolve()):
            return register(function, *args, **kwargs)
        kept.callback(function, *args, **kwargs)
        return function

    atexit.register = registered
    try:
        with kept:
            yield
    finally:
        atexit.register = register


def _reachable_bytes(gpu: simcuda.Gpu) -> int:
    """Requested bytes that are live but for garbage, which the collector finds sooner or later."""
    gc.collect()
    return gpu.live_bytes()


def _last_error() -> str:
    """Return the last line that this process wrote, such as the error of an argument parser."""
    sys.stderr.flush()
    if not stat.S_ISREG(os.fstat(2).st_mode):
        return ""
    lines = (
        Path("/proc/self/fd/2")
        .read_text(encoding="utf-8", errors="replace")
        .split("\n")
    )
    return next((f": {line.strip()}" for line in reversed(lines) if line.strip()), "")


def _cost(
    runs: Sequence[VariantRun], key: str | Place, fit: Fit | None
) -> dict[str, Any]:
    values = [
        each.metrics[key] if isinstance(key, str) else each.sites.get(key, 0)
        for each in runs
    ]
    growth = fit.growth if fit else None
    # Calls that differ have a range, and no law of one of them is a law of all.
    least = [
        each.least.get(key, most)
        for each, most in zip(runs, values, strict=True)
        if isinstance(each, CallsRun)
    ]
    if least and least != values:
        return {"values": values, "law": None, "growth": f"{min(least)}..{max(values)}"}
    ranges = [each.ranges.get(key) for each in runs] if isinstance(key, str) else []
    cost = {"values": values, "law": fit.law if fit else None, "growth": growth}
    return {**cost, "ranges": ranges} if any(ranges) else cost


def _sites(
    runs: Sequence[VariantRun], fits: Mapping[Place, Fit], root: Path, callers: Callers
) -> list[dict[str, Any]]:
    """Every line with its counts: first waits, then hazards, then copies and allocations."""
    # Paths are relative to the root or to where a package is installed.
    folders = [root, *(Path(entry) for entry in sys.path if entry)]
    reached = {
        (portable(file, root), line, function): (file, line, function)
        for file, line, function in callers.nearest
    }
    sites = []
    for key in sorted({key for each in runs for key in each.sites}):
        file, line, function, what = key
        source = next(
            (folder / file for folder in folders if (folder / file).is_file()), None
        )
        begin, statement = statement_at(str(source), line)
        there = reached.get(key[:3])
        nearest = callers.nearest[there].most_common() if there else []
        cost = _cost(runs, key, fits.get(key))
        sites.append(
            {
                "file": file,
                "line": line,
                "function": function,
                "what": what,
                "text": linecache.getline(str(source), line).strip(),
                "statement": statement,
                "begin": begin,
                "called_from": [
                    {
                        "file": portable(own, root),
                        "line": at,
                        "function": name,
                        "statement": statement_at(own, at)[1],
                    }
                    for (own, at, name), _ in nearest
                    if (own, at, name) != there
                ],
                "hidden": callers.hidden.get(there, "") if there else "",
                "repeated": there is None or there in callers.repeated,
                "per_step": callers.waits_per_step(there, cost["values"][0])
                if there
                else 0,
                "cost": cost,
            }
        )
    return sorted(
        sites,
        key=lambda site: (
            HEAVIEST_FIRST.index(site["what"]),
            -max(site["cost"]["values"]),
        ),
    )


def run_node(gpu: simcuda.Gpu, job: RunJob, root: Path) -> VariantRun:
    """Run the tests of a pytest node in this process, and count them, without fixtures, as one run.

    Raises:
        WrongTargetError: Pytest does not find the node.
        CannotMeasureError: No test of it ran.
    """
    try:
        pytest: Any = importlib.import_module("pytest")
    except ImportError:
        raise WrongTargetError(
            f"{job.target} is a test, and pytest is not installed here"
        ) from None
    runs: list[VariantRun] = []
    failures: list[str] = []
    skipped: list[str] = []

    class CountingPlugin:
        """Counts every test, and keeps why tests failed or were skipped."""

        @pytest.hookimpl(wrapper=True)  # type: ignore[untyped-decorator]  # pytest is loaded by its name
        def pytest_runtest_call(self) -> Generator[None, object, object]:
            """Count the test without its fixtures; raise what it raises when counting has ended."""
            before = _reachable_bytes(gpu)
            result: object = None
            raised: BaseException | None = None
            with gpu.measure() as counted:
                try:
                    with _time_limit(job.seconds, TimeoutError):
                        result = yield
                except BaseException as error:
                    raised = error
            if not isinstance(raised, pytest.skip.Exception):
                retained = _reachable_bytes(gpu) - before
                ending = "raised" if raised else None
                runs.append(VariantRun.of(counted, retained, root, ONCE, ending))
            if raised:
                raise raised
            return result

        def pytest_exception_interact(self, call: Any) -> None:
            """Keep what a test that failed says."""
            failures.append(describe(call.excinfo.value, root))

        def pytest_runtest_logreport(self, report: Any) -> None:
            """Keep why a test was skipped."""
            if report.skipped and isinstance(report.longrepr, tuple):
                skipped.append(str(report.longrepr[2]))

    code = pytest.main(
        [*PYTEST_OPTIONS, *job.arguments, job.target], plugins=[CountingPlugin()]
    )
    if (
        code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED)
        and not failures
    ):
        raise WrongTargetError(f"pytest finds no test {job.target}")
    if not runs:
        reasons = failures or skipped or [f"pytest ended with {int(code)}"]
        raise CannotMeasureError(f"no test ran: {'; '.join(dict.fromkeys(reasons))}")
    sites: Counter[Place] = Counter()
    allowed: Counter[AllowedPlace] = Counter()
    operations: dict[str, Counter[str]] = {}
    for each in runs:
        sites.update(each.sites)
        allowed.update(each.allowed)
        for name, counts in each.operations.items():
            operations.setdefault(name, Counter()).update(counts)
    return VariantRun(
        at=ONCE,
        metrics={
            name: (max if name in LARGEST else sum)(each.metrics[name] for each in runs)
            for name in runs[0].metrics
        },
        sites=dict(sites),
        unknown=tuple({name for each in runs for name in each.unknown}),
        approximate=tuple({name for each in runs for name in each.approximate}),
        ranges=join_ranges(
            runs, lambda name, each: (max if name in LARGEST else sum)(each)
        ),
        error=next(iter(failures), None),
        operations=operations,
        allowed=dict(allowed),
    )
