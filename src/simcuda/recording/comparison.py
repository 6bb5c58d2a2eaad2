"""How far the simulation agrees with a recording, by metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simcuda.recording.recorder import Recording
from simcuda.recording.selection import GROUP_NAMES
from simcuda.recording.worker import COUNTS

PEAK_TOLERANCE = 0.01
"""The relative error allowed in the peak of requested bytes."""

LEAST_COMPARABLE = 0.9
"""The share of the recorded cases that must still be there, and the same; with fewer, record again."""

CASE = "case"
"""Used in place of a metric if the case has changed."""

ENDING = "ending"
"""Used in place of a metric if the case ended in another way."""


DIFFERENCES = (
    ("op/", (CASE,), "the samples of operators are not the same in every version"),
    (
        "optimizer/",
        (CASE, ENDING),
        "an optimizer, or a way of running it, is not there in every version",
    ),
)
"""In what versions of torch differ: how the ids of cases begin, the metrics, and why.

A row about counts needs a source, as a rule does.
"""

METRICS = {
    "syncs": (("stream_syncs", "event_syncs", "device_syncs"), 0.99),
    "copies": (tuple(name for name in COUNTS if name[:3] in ("h2d", "d2h", "d2d", "p2p")), 0.99),
    "peak_bytes": (("peak_bytes",), 0.95),
    "launches": (("launches",), 0.90),
    "implicit_syncs": (("implicit_syncs",), None),
    "allocations": (("allocations",), None),
}
"""The counts of each metric that must all agree, and the share of cases in which they must.

Those without a share are only for information.
"""


@dataclass(frozen=True)
class CaseDisagreement:
    """One thing in which a recording and the simulation differ.

    Attributes:
        case: The id of the case.
        metric: The metric, or ``CASE`` or ``ENDING``.
        recorded: What the recording says.
        simulated: What the simulation says.
        unsure: Operations of the case that are unknown or approximate in the simulation.
    """

    case: str
    metric: str
    recorded: str
    simulated: str
    unsure: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExplainedDisagreement(CaseDisagreement):
    """One that a difference of torch versions explains."""

    why: str = ""


@dataclass(frozen=True)
class NotCompared:
    """A case that was not compared, and why."""

    case: str
    why: str


@dataclass(frozen=True)
class MetricTally:
    """In how many of the compared cases a metric agrees.

    Attributes:
        metric: Its name.
        agreed: Cases in which it agrees.
        compared: Cases that were compared.
        share: ``agreed / compared``, from 0 to 1; 0 if nothing was compared.
        least: The share that must agree; None if it is only for information.
    """

    metric: str
    agreed: int
    compared: int
    share: float
    least: float | None

    @property
    def falls_short(self) -> bool:
        """Whether too few cases agree."""
        return self.least is not None and self.share < self.least


@dataclass(frozen=True)
class RecordingAgreement:
    """What comparing a recording with the simulation showed; in JSON it has the same keys.

    Attributes:
        recording: Which recording, by its environment.
        made_by: Who made it: ``real`` or ``simulated``.
        falls_short: Whether a metric agrees in too few cases, or too few cases can be compared.
        compared: Number of cases that were compared.
        comparable: The share of the recorded cases that could be compared, from 0 to 1.
        metrics: A tally of each metric.
        disagreements: Counts and endings that differ.
        explained: Those that a difference of torch versions explains; not tallied.
        not_comparable: Recorded cases that are not there any more, or are others now.
        not_recorded: Cases for which the recording or the simulation has nothing.
    """

    recording: Mapping[str, Any]
    made_by: str
    falls_short: bool
    compared: int
    comparable: float
    metrics: tuple[MetricTally, ...]
    disagreements: tuple[CaseDisagreement, ...]
    explained: tuple[ExplainedDisagreement, ...]
    not_comparable: tuple[NotCompared, ...]
    not_recorded: tuple[NotCompared, ...]


def compare(
    recorded: Recording, simulated: Recording, tolerance: float = PEAK_TOLERANCE
) -> RecordingAgreement:
    """Compare a recording with its simulation, case by case.

    Args:
        recorded: The recording.
        simulated: The simulation of the same selection, or of a part of it.
        tolerance: The relative error allowed in the peak of requested bytes.
    """
    selects = simulated.selection.has
    of_version, here = (each.environment["torch"].split(".")[:2] for each in (recorded, simulated))
    # Cases that one of the two has no result for, with the reason.
    not_recorded: dict[str, str] = {}
    for suite, why in simulated.left_out.items():
        beginning = GROUP_NAMES.get(suite) or f"verifier/{Path(suite).stem}"
        for id_ in recorded.cases:
            if selects(id_) and id_.startswith(f"{beginning}/") and id_ not in simulated.cases:
                not_recorded[id_] = f"not simulated: {why}"
    for id_, case in recorded.cases.items():
        if selects(id_) and (reason := case.get("lost") or case.get("not_run")):
            not_recorded[id_] = reason
    not_recorded |= {id_: "not in the recording" for id_ in simulated.cases if id_ not in recorded.cases}
    ids = [id_ for id_ in recorded.cases if selects(id_) and id_ not in not_recorded]
    unexplained: list[CaseDisagreement] = []
    explained: list[ExplainedDisagreement] = []
    for id_ in ids:
        for each in _disagreements(id_, recorded.cases[id_], simulated.cases.get(id_), tolerance):
            reasons = [
                why
                for beginning, metrics, why in DIFFERENCES
                if of_version != here and id_.startswith(beginning) and each.metric in metrics
            ]
            if reasons:
                explained.append(ExplainedDisagreement(**vars(each), why=reasons[0]))
            else:
                unexplained.append(each)
    # A case that is another one now cannot be compared at all.
    changed = {each.case for each in (*unexplained, *explained) if each.metric == CASE}
    not_comparable = [each for each in unexplained if each.metric == CASE]
    compared = len(ids) - len(changed)
    tallies = []
    for metric, (_, least) in METRICS.items():
        # A case that ended otherwise agrees in no metric.
        wrong = {each.case for each in unexplained if each.metric in (metric, ENDING)}
        aside = {each.case for each in explained if each.metric in (metric, ENDING)} - wrong
        agreed, of = compared - len(wrong) - len(aside), compared - len(aside)
        tallies.append(MetricTally(metric, agreed, of, agreed / of if of else 0.0, least))
    comparable = compared / max(1, compared + len(not_comparable))
    return RecordingAgreement(
        recording=recorded.environment,
        made_by=recorded.environment["made_by"],
        falls_short=comparable < LEAST_COMPARABLE or any(tally.falls_short for tally in tallies),
        compared=compared,
        comparable=comparable,
        metrics=tuple(tallies),
        disagreements=tuple(each for each in unexplained if each.metric != CASE),
        explained=tuple(explained),
        not_comparable=tuple(NotCompared(each.case, each.simulated) for each in not_comparable),
        not_recorded=tuple(NotCompared(case, why) for case, why in not_recorded.items()),
    )


def _disagreements(
    id_: str, recorded: Mapping[str, Any], simulated: Mapping[str, Any] | None, tolerance: float
) -> Iterator[CaseDisagreement]:
    if simulated is None:
        yield CaseDisagreement(id_, CASE, "recorded", "there is no such case any more")
    elif recorded["digest"] != simulated.get("digest", recorded["digest"]):
        yield CaseDisagreement(id_, CASE, "recorded", "another case has this id now")
    elif "counts" in recorded and "counts" in simulated:
        unsure = tuple(sorted({*simulated.get("unknown", ()), *simulated.get("approximate", ())}))
        for metric, (counts, _) in METRICS.items():
            allowed = tolerance if metric == "peak_bytes" else 0
            pairs = {n: (recorded["counts"].get(n, 0), simulated["counts"].get(n, 0)) for n in counts}
            differing = {n: pair for n, pair in pairs.items() if abs(pair[1] - pair[0]) > allowed * pair[0]}
            if differing:
                one = ", ".join(f"{n} {recorded_count}" for n, (recorded_count, _) in differing.items())
                other = ", ".join(f"{n} {simulated_count}" for n, (_, simulated_count) in differing.items())
                yield CaseDisagreement(id_, metric, one, other, unsure)
    elif (expected := _ending(recorded)) != (actual := _ending(simulated)):
        yield CaseDisagreement(id_, ENDING, expected, actual)


def _ending(case: Mapping[str, Any]) -> str:
    """How a case ended: of an error only the type must agree, since messages differ."""
    if "error" in case:
        return str(case["error"]).partition(":")[0]
    return "counted" if "counts" in case else next(f"{kind}: {case[kind]}" for kind in ("lost", "not_run"))
