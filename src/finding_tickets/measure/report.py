"""What is measured for one ticket and what comes back: plain values that travel between processes as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from finding_tickets.measure.measurement import Measurement
from finding_tickets.measure.source import Comparison, Source

At = dict[str, int]
SIMULATED_DEVICE = "h200-cuda13"
METERS = ("auto", "simulated", "cuda")


def at_text(at: Mapping[str, int]) -> str:
    """A point in words: ``params=4, largest=1024``."""
    return ", ".join(f"{name}={value}" for name, value in at.items())


class CannotMeasureError(Exception):
    """A verifier, a variant or a meter that is not what it should be; the message names the file and why."""


class WrongTargetError(Exception):
    """Nothing of that name can be measured, or not when called like that; the message says how it can."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One ticket to measure.

    ``root`` is absolute and ``verifier`` relative to it; the variants are imported from ``code``, which is
    another folder for those at a revision. ``meter`` is ``auto``, ``simulated`` or ``cuda``. ``graph_breaks``
    names the variants whose graph breaks are to be counted, and ``kept`` those whose results are written to
    the folder ``results``, to be compared with what other processes have written there.
    """

    root: str
    code: str
    verifier: str
    variants: dict[str, Source]
    meter: str = "auto"
    graph_breaks: tuple[str, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    kept: tuple[str, ...] = ()
    results: str = ""


@dataclass(frozen=True)
class Code:
    """Variants that are imported from one folder, which is absolute, and run in one process."""

    folder: str
    variants: dict[str, Source]


@dataclass(frozen=True)
class Question:
    """Two variants to time at one point.

    ``edges`` are the ratios of their times, the subject's to the reference's, at which the outcome of a claim
    turns.
    """

    subject: str
    reference: str
    at: At
    edges: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class TimeJob:
    """Variants to time, one process for each folder of code, all on the same ``device``: ``cuda`` or ``cpu``.

    ``root`` and ``verifier`` are as in a ``Job``. ``seconds`` is what all rounds may take together.
    """

    root: str
    verifier: str
    codes: tuple[Code, ...]
    device: str
    questions: tuple[Question, ...]
    seconds: float


@dataclass(frozen=True)
class Interval:
    """The median of a ratio over some rounds, and between which ratios it lies but for the doubt allowed."""

    ratio: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        """``0.31 (0.29 to 0.34 over 32 rounds)``."""
        return f"{self.ratio:.3g} ({self.low:.3g} to {self.high:.3g} over {self.rounds} rounds)"


@dataclass(frozen=True)
class Timing:
    """How the times of two variants compare at one point, or why that is not known."""

    subject: str
    reference: str
    at: At
    found: Interval | None
    why: str | None = None


@dataclass(frozen=True)
class Times:
    """All timings of one ticket and what they were taken on; ``why`` says why there are none at all."""

    device: str
    timings: tuple[Timing, ...] = ()
    why: str | None = None


@dataclass(frozen=True)
class Run:
    """One variant at one point; with an ``error`` it counted up to the exception."""

    at: At
    measurement: Measurement
    error: str | None = None


@dataclass(frozen=True)
class Agreement:
    """How one comparison ended at one point: neither a difference nor skipped means equal."""

    comparison: Comparison
    at: At
    difference: str | None = None
    skipped: bool = False


@dataclass(frozen=True)
class Skipped:
    """A point that the meter could not run, and why."""

    at: At
    why: str


@dataclass(frozen=True)
class Report:
    """All runs of one ticket on one meter; ``files`` are those below the root that were imported.

    Each has its SHA-256 as it was then, for it may be edited while the measurement runs.

    ``timed_on`` is the workload's. Times are taken afterwards, in processes of their own.
    """

    meter: str
    torch: str
    device: str
    sweep: tuple[At, ...]
    runs: dict[str, tuple[Run, ...]]
    agreements: tuple[Agreement, ...] = ()
    not_measured: tuple[Skipped, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    timed_on: str = "cuda"
    times: Times | None = None
