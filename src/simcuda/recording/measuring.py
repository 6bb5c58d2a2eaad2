"""Run one case and count what it costs, in a steady state."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import torch

from simcuda.gpu import Gpu
from simcuda.real import CannotCountError
from simcuda.recording.case import MEASURED, WARM_UP, Case, NotRunError

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


def outcome(case: Case, gpu: Gpu) -> dict[str, Any]:
    """How a case ended, as a recording holds it.

    ``counts`` holds what is not 0, with ``unknown`` and ``approximate`` operations where there are any;
    ``error`` is the exception with which the case ended, and ``not_run`` why there was nothing to run, or
    nothing was counted.
    """
    tries = count(1)
    while True:
        try:
            with _steady_state():
                _warm_up(case)
            with _steady_state():
                return _measured(case, gpu)
        except NotRunError as reason:
            return {"not_run": str(reason)}
        except CannotCountError as error:
            # A profiler loses something now and then.
            if next(tries) == TRIES:
                return {"not_run": f"not counted: {error}"}
        except Exception as error:
            return {"error": in_words(error)}


def _warm_up(case: Case) -> None:
    """Run once on other data; how that ends does not matter, unless there is nothing to run."""
    try:
        case.prepare(WARM_UP)()
    except NotRunError:
        raise
    except Exception:
        return


def _measured(case: Case, gpu: Gpu) -> dict[str, Any]:
    work = case.prepare(MEASURED)
    result = error = None
    with gpu.measure() as cost:
        try:
            result = work()
        except Exception as raised:
            error = in_words(raised)
    del result
    if error is not None:
        return {"error": error}
    counts = {name: value for name in COUNTS if (value := getattr(cost, name))}
    unsure = {"unknown": list(cost.unknown), "approximate": list(cost.approximate)}
    return {"counts": counts, **{name: operations for name, operations in unsure.items() if operations}}


def in_words(error: BaseException) -> str:
    """An exception in one line: its type, and the first line of what it says."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return ADDRESS.sub("0x", text)[:LONGEST_ERROR]


@contextmanager
def _steady_state() -> Iterator[None]:
    """Collect no garbage within, so that peaks do not depend on when that happens; put settings back."""
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)
