"""Make a recording: run all selected suites, one after the other."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import closing
from math import inf
from typing import Any

from simcuda.recording.file import Recording
from simcuda.recording.selection import Selection
from simcuda.recording.suite_runner import CannotRecordError, SuiteProgress, run_suite
from simcuda.recording.worker import SuiteOrder

CASE_SECONDS = 120.0
"""How long one case may take, with what the worker loads before the first."""

BETWEEN_REPORTS = 5.0


def record(
    selection: Selection,
    profile: dict[str, Any] | None,
    *,
    say: Callable[[str], object],
    case_seconds: float = CASE_SECONDS,
    all_seconds: float = inf,
) -> Recording:
    """Run every selected case, in the time that there is.

    Args:
        selection: Which cases.
        profile: The profile to simulate, as a header has it; None for the real devices.
        say: Called with messages about the progress, every few seconds.
        case_seconds: How long one case may take.
        all_seconds: How long all may take; cases that did not run by then are named as left out.

    Raises:
        CannotCountHereError: Nothing can be counted on the device.
        CannotRecordError: Nothing is selected.
        FileNotFoundError: A verifier that is selected is not there.
    """
    deadline = time.monotonic() + all_seconds
    environment: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    cases: dict[str, dict[str, Any]] = {}

    def leave_out(suite: str, reason: str) -> None:
        left_out[suite] = reason
        say(f"{suite}: left out: {reason}")

    for suite in selection.suites():
        if time.monotonic() >= deadline:
            leave_out(suite, "the time was up")
            continue
        progress, before, begun = SuiteProgress(), len(cases), time.monotonic()
        reported = begun
        # Every suite has its own processes, so that none depends on what ran before.
        order = SuiteOrder(suite, selection, profile)
        try:
            with closing(run_suite(order, progress, case_seconds)) as outcomes:
                for id_, outcome in outcomes:
                    if id_ in cases:
                        raise ValueError(f"two cases with the id {id_}")
                    cases[id_] = outcome
                    if "lost" in outcome:
                        say(f"lost {id_}: {outcome['lost']}")
                    now = time.monotonic()
                    if now > deadline:
                        leave_out(suite, f"what follows {id_}, as the time was up")
                        break
                    if now - reported > BETWEEN_REPORTS:
                        reported = now
                        say(f"{suite}: {id_}")
        except KeyboardInterrupt:
            # What there is by then is worth keeping: an interrupt is an early deadline.
            deadline = time.monotonic()
            leave_out(suite, "what had not run when it was interrupted")
        if progress.absent:
            leave_out(suite, progress.absent)
        environment = environment or progress.environment
        say(f"{suite}: {len(cases) - before} cases in {time.monotonic() - begun:.0f} s")
    if not environment:
        raise CannotRecordError("no case was run: none is selected, or every process ended before the first")
    return Recording(environment, selection, left_out, cases)


def say_on_stderr(text: str) -> None:
    """Print the progress to standard error.

    What it prints may be piped to a file or to another program.
    """
    print(text, file=sys.stderr, flush=True)
