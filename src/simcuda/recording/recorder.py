"""Make a recording: run all selected suites, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from math import inf
from typing import Any

from simcuda.recording.file import Recording
from simcuda.recording.selection import Selection
from simcuda.recording.supervising import CannotRecordError, Progress, run_suite
from simcuda.recording.worker import Order

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
        say: Told how far it is, every few seconds.
        case_seconds: How long one case may take.
        all_seconds: How long all may take; what does not come to its turn by then is named as left out.

    Raises:
        CannotCountHereError: Nothing can be counted on the device.
        CannotRecordError: Nothing is selected.
        FileNotFoundError: A verifier that is selected is not there.
    """
    recorder = _Recorder(selection, profile, case_seconds, time.monotonic() + all_seconds, say)
    for suite in selection.suites():
        if time.monotonic() < recorder.deadline:
            recorder.run(suite)
        else:
            recorder.leave_out(suite, "the time was up")
    if not recorder.environment:
        raise CannotRecordError("no case was run: none is selected, or every process ended before the first")
    return Recording(recorder.environment, selection, recorder.left_out, recorder.cases)


@dataclass
class _Recorder:
    selection: Selection
    profile: dict[str, Any] | None
    case_seconds: float
    deadline: float
    say: Callable[[str], object]
    environment: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    cases: dict[str, dict[str, Any]] = field(default_factory=dict)

    def run(self, suite: str) -> None:
        """Run a suite as far as time allows."""
        progress, begun, before = Progress(), time.monotonic(), len(self.cases)
        order = Order(suite, self.selection, self.profile)
        with closing(run_suite(order, progress, self.case_seconds)) as outcomes:
            self._take(suite, outcomes)
        if progress.absent:
            self.leave_out(suite, progress.absent)
        self.environment = self.environment or progress.environment
        self.say(f"{suite}: {len(self.cases) - before} cases in {time.monotonic() - begun:.0f} s")

    def leave_out(self, suite: str, reason: str) -> None:
        """Note that a suite does not run, or not to its end."""
        self.left_out[suite] = reason
        self.say(f"{suite}: left out: {reason}")

    def _take(self, suite: str, outcomes: Iterator[tuple[str, dict[str, Any]]]) -> None:
        reported = time.monotonic()
        try:
            for id_, outcome in outcomes:
                if id_ in self.cases:
                    raise ValueError(f"two cases with the id {id_}")
                self.cases[id_] = outcome
                if "lost" in outcome:
                    self.say(f"lost {id_}: {outcome['lost']}")
                now = time.monotonic()
                if now > self.deadline:
                    self.leave_out(suite, f"what follows {id_}, as the time was up")
                    return
                if now - reported > BETWEEN_REPORTS:
                    reported = now
                    self.say(f"{suite}: {id_}")
        except KeyboardInterrupt:
            self.deadline = time.monotonic()
            self.leave_out(suite, "what had not run when it was interrupted")
