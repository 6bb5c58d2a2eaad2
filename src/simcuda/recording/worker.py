"""A process that runs the cases of one suite on real or simulated devices, and reports each on a pipe.

A message is a JSON object with one of these keys: ``why_not`` (nothing can be counted here), ``environment``,
``absent`` (why the suite has no cases here), ``begin`` and ``end``. What begins and ends is a group, by its
name, or a case, by its id; at last the suite ends. The end of a case has its ``outcome``. A worker that ends
before its suite is followed by another one.
"""

from __future__ import annotations

import gc
import json
import pickle
import platform
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch

import simcuda
from simcuda import real
from simcuda.measurement import Gpu
from simcuda.profile import PROFILES, MultiTensorTables, Profile
from simcuda.real import CannotCountError
from simcuda.recording.case import MEASURED, WARM_UP, Case, NotRunError
from simcuda.recording.selection import Selection

REAL, SIMULATED = "real", "simulated"


@dataclass
class Devices:
    """Fresh simulated devices of a profile for each case, or else the CUDA devices of this machine.

    Where real ones cannot be counted on, all raise ``CannotCountError``.
    """

    _profile: Profile | None

    def environment(self) -> dict[str, Any]:
        """What the counts depend on, as the header of a recording has it."""
        if profile := self._profile:
            device = {"device": profile.gpu, "driver": None, "cuda": profile.cuda_version}
        else:
            with real.real_device() as gpu:
                found, profile = real.environment(), gpu.profile
            device = {"device": found.gpu, "driver": found.driver, "cuda": found.cuda}
        return {
            "made_by": SIMULATED if self._profile else REAL,
            **device,
            # Without the name of torch's build: the simulation is the same on every one.
            "torch": torch.__version__.split("+")[0],
            "python": platform.python_version(),
            "profile": asdict(profile),
        }

    def for_case(self, case: Case) -> AbstractContextManager[Gpu]:
        """The devices and the memory that the case needs."""
        if self._profile is None:
            return real.real_device(case.devices, capacity=case.memory)
        return simcuda.device(case.devices, profile=self._profile.name, capacity=case.memory)

    def is_healthy(self) -> bool:
        """Whether this process can continue: after an illegal access CUDA refuses all further calls."""
        try:
            if self._profile is None:
                torch.cuda.synchronize()
        except RuntimeError:
            return False
        return True


def profile_from(fields: dict[str, Any]) -> Profile:
    """A profile from a header; this version's own profile of that name is preferred."""
    if known := PROFILES.get(fields["name"]):
        return known
    # JSON has lists where a profile has tuples.
    parts: Any = (
        {name: tuple(value) if isinstance(value, list) else value for name, value in each.items()}
        for each in (fields["multi_tensor"], fields)
    )
    tables, figures = parts
    return Profile(**{**figures, "multi_tensor": MultiTensorTables(**tables)})


Tell = Callable[[dict[str, Any]], None]

COUNTS = (
    "stream_syncs",
    "event_syncs",
    "device_syncs",
    "implicit_syncs",
    *(f"{kind}{what}" for kind in ("h2d", "d2h", "d2d", "p2p") for what in ("", "_bytes")),
    "launches",
    "allocations",
    "peak_bytes",
)
"""What is recorded of a measurement, by the names of its attributes."""

TRIES = 3
LONGEST_ERROR = 200
ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass(frozen=True)
class SuiteOrder:
    """What a worker is to do.

    Attributes:
        suite: The suite.
        selection: What of it.
        profile: The profile to simulate, as a header has it; None for the real devices.
        done: The groups that are done, and the cases.
    """

    suite: str
    selection: Selection
    profile: dict[str, Any] | None
    done: frozenset[str] = frozenset()


def work(order: SuiteOrder, tell: Tell) -> None:
    """Run the order, and ``tell`` each message."""
    profile = None if order.profile is None else profile_from(order.profile)
    if profile is not None:
        # A recording brings along the profile of a real GPU that this version does not know.
        PROFILES.setdefault(profile.name, profile)
    devices = Devices(profile)
    try:
        tell({"environment": devices.environment()})
        groups = order.selection.groups(order.suite)
    except CannotCountError as error:
        tell({"why_not": str(error)})
        return
    except ImportError as error:
        tell({"absent": in_words(error)})
        groups = {}
    left = (name for name in groups if name not in order.done)
    if all(run_group(name, groups[name], order, devices, tell) for name in left):
        tell({"end": order.suite})


def run_group(
    group: str, find: Callable[[], Iterable[Case]], order: SuiteOrder, devices: Devices, tell: Tell
) -> bool:
    """Run the cases of a group while the devices work; returns whether they still do."""
    tell({"begin": group})
    try:
        # Looking for cases may run code of the user, such as a verifier's.
        cases = [case for case in find() if order.selection.has(case.id)]
    except Exception as error:
        tell({"end": group, "outcome": {"lost": in_words(error)}})
        return True
    for case in cases:
        if case.id not in order.done:
            tell({"begin": case.id})
            gc.collect()
            # What is left between two cases stays: the next collection need not look at it.
            gc.freeze()
            try:
                with devices.for_case(case) as gpu:
                    ended = outcome(case, gpu)
            except CannotCountError as reason:
                ended = {"not_run": str(reason)}
            tell({"end": case.id, "outcome": {"digest": case.digest, **ended}})
            if not devices.is_healthy():
                return False
    tell({"end": group})
    return True


def outcome(case: Case, gpu: Gpu) -> dict[str, Any]:
    """How a case ended in a steady state, as a recording holds it.

    ``counts`` holds what is not 0, with ``unknown`` and ``approximate`` operations where there are any;
    ``error`` is the exception with which the case ended, and ``not_run`` why there was nothing to run, or
    nothing was counted.
    """
    for _ in range(TRIES):
        try:
            with _steady_state():
                try:
                    case.prepare(WARM_UP)()
                except NotRunError:
                    raise
                except Exception:  # noqa: S110 - how it ends on other data does not matter
                    pass
            with _steady_state():
                work = case.prepare(MEASURED)
                result = error = None
                with gpu.measure() as cost:
                    try:
                        result = work()
                    except Exception as raised:
                        error = in_words(raised)
                # The result is retained by the work, and gone before the next case.
                del result, work
                if error is not None:
                    return {"error": error}
                counts = {name: value for name in COUNTS if (value := getattr(cost, name))}
                unsure = {"unknown": list(cost.unknown), "approximate": list(cost.approximate)}
                return {"counts": counts, **{name: ops for name, ops in unsure.items() if ops}}
        except NotRunError as reason:
            return {"not_run": str(reason)}
        except CannotCountError as failure:
            # A profiler loses events now and then.
            ended = {"not_run": f"not counted: {failure}"}
        except Exception as failure:
            return {"error": in_words(failure)}
    return ended


def in_words(error: BaseException) -> str:
    """An exception in one line: its type, and the first line of what it says."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return ADDRESS.sub("0x", text)[:LONGEST_ERROR]


@contextmanager
def _steady_state() -> Iterator[None]:
    """Collect no garbage in the block, so that peaks do not depend on it; restore the settings."""
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)


def main() -> None:
    """Take an order from standard input, and report on the pipe whose number is the argument."""
    # Warnings of cases would mix with the messages of the recorder.
    warnings.simplefilter("ignore")
    order: SuiteOrder = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
    with Connection(int(sys.argv[1]), readable=False) as pipe:
        work(order, lambda message: pipe.send_bytes(json.dumps(message).encode()))


if __name__ == "__main__":
    main()
