"""Make a recording: run all selected suites, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from simcuda.recording.file import Recording
from simcuda.recording.selection import Selection
from simcuda.recording.supervising import CannotRecordError, Progress, run_suite
from simcuda.recording.worker import Order

SECONDS = 120.0
"""How long one case may take, with what the worker loads before the first."""

BETWEEN_REPORTS = 5.0


def record(
    selection: Selection,
    profile: dict[str, Any] | None,
    *,
    seconds: float = SECONDS,
    say: Callable[[str], object],
) -> Recording:
    """Run every selected case.

    Args:
        selection: Which cases.
        profile: The profile to simulate, as a header has it; None for the real devices.
        seconds: How long one case may take.
        say: Told how far it is, every few seconds.

    Raises:
        CannotRecordError: Nothing can be counted, or nothing is selected.
        FileNotFoundError: A verifier that is selected is not there.
    """
    environment: dict[str, Any] = {}
    absent: dict[str, str] = {}
    cases: dict[str, dict[str, Any]] = {}
    for suite in selection.suites():
        progress, begun = Progress(), time.monotonic()
        before, reported = len(cases), begun
        for id_, outcome in run_suite(Order(suite, selection, profile), progress, seconds):
            if id_ in cases:
                raise ValueError(f"two cases with the id {id_}")
            cases[id_] = outcome
            if "lost" in outcome:
                say(f"lost {id_}: {outcome['lost']}")
            if time.monotonic() - reported > BETWEEN_REPORTS:
                reported = time.monotonic()
                say(f"{suite}: {len(cases) - before} cases, {id_}")
        environment = environment or progress.environment
        if progress.absent:
            absent[suite] = progress.absent
            say(f"{suite}: left out: {progress.absent}")
        say(f"{suite}: {len(cases) - before} cases in {time.monotonic() - begun:.0f} s")
    if not cases:
        raise CannotRecordError("no case is selected")
    return Recording(environment, selection, absent, cases)
