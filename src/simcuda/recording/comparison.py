"""How far the simulation agrees with a recording, by metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simcuda.recording.file import Recording
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
class TorchDifference:
    """A way in which two versions of torch differ.

    Attributes:
        reason: What differs.
        explains: Whether it explains a disagreement between a recording and the simulation, given the
            version of torch that each ran with, such as ``(2, 13)``.
    """

    reason: str
    explains: Callable[[CaseDisagreement, tuple[int, ...], tuple[int, ...]], bool]


DIFFERENCES = (
    TorchDifference(
        "the samples of operators are not the same in every version",
        lambda each, recorded, simulated: (
            recorded != simulated and each.metric == CASE and each.case.startswith("op/")
        ),
    ),
    TorchDifference(
        "an optimizer, or a way of running it, is not there in every version",
        lambda each, recorded, simulated: (
            recorded != simulated and each.metric in (CASE, ENDING) and each.case.startswith("optimizer/")
        ),
    ),
)
"""The known differences; a row about counts needs a source, as a rule does."""


@dataclass(frozen=True)
class ComparedMetric:
    """Counts that agree or disagree together.

    Attributes:
        name: Its own name.
        counts: The counts that must all agree.
        least: The share of cases in which they must; None if they are only for information.
    """

    name: str
    counts: tuple[str, ...]
    least: float | None


METRICS = (
    ComparedMetric("syncs", ("stream_syncs", "event_syncs", "device_syncs"), 0.99),
    ComparedMetric(
        "copies", tuple(name for name in COUNTS if name[:3] in ("h2d", "d2h", "d2d", "p2p")), 0.99
    ),
    ComparedMetric("peak_bytes", ("peak_bytes",), 0.95),
    ComparedMetric("launches", ("launches",), 0.90),
    ComparedMetric("implicit_syncs", ("implicit_syncs",), None),
    ComparedMetric("allocations", ("allocations",), None),
)


@dataclass(frozen=True)
class MetricTally:
    """In how many of the compared cases a metric agrees.

    Attributes:
        metric: The metric.
        agreed: Cases in which it agrees.
        compared: Cases that were compared.
        share: ``agreed / compared``, from 0 to 1; 0 if nothing was compared.
        falls_short: Whether too few cases agree.
    """

    metric: ComparedMetric
    agreed: int
    compared: int
    share: float
    falls_short: bool


@dataclass(frozen=True)
class RecordingAgreement:
    """What comparing a recording with the simulation showed.

    Attributes:
        recording: Which recording, by its environment.
        tallies: One for each metric.
        disagreements: Counts and endings that differ.
        explained: Those that a difference of torch versions explains, each with the reason; not tallied.
        not_comparable: Recorded cases that are not there any more, or are others now, each with the reason.
        not_recorded: Cases for which the recording has nothing, each with the reason.
        compared: Number of cases that were compared.
        comparable: The share of the recorded cases that could be compared, from 0 to 1.
        falls_short: Whether a metric agrees in too few cases, or too few cases can be compared.
    """

    recording: Mapping[str, Any]
    tallies: tuple[MetricTally, ...]
    disagreements: tuple[CaseDisagreement, ...]
    explained: tuple[tuple[CaseDisagreement, str], ...]
    not_comparable: tuple[tuple[str, str], ...]
    not_recorded: tuple[tuple[str, str], ...]
    compared: int
    comparable: float
    falls_short: bool


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
    versions = [
        tuple(map(int, recording.environment["torch"].split(".")[:2])) for recording in (recorded, simulated)
    ]
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
    for id_ in simulated.cases:
        if id_ not in recorded.cases:
            not_recorded[id_] = "not in the recording"
    ids = [id_ for id_ in recorded.cases if selects(id_) and id_ not in not_recorded]
    found = [
        (disagreement, next((d.reason for d in DIFFERENCES if d.explains(disagreement, *versions)), None))
        for id_ in ids
        for disagreement in _disagreements(id_, recorded.cases[id_], simulated.cases.get(id_), tolerance)
    ]
    # A case that is another one now cannot be compared at all.
    changed = {disagreement.case for disagreement, _ in found if disagreement.metric == CASE}
    explained = tuple((disagreement, why) for disagreement, why in found if why)
    unexplained = [disagreement for disagreement, why in found if not why]
    compared = len(ids) - len(changed)
    tallies = []
    for metric in METRICS:
        # A case that ended otherwise agrees in no metric.
        about = (metric.name, ENDING)
        wrong = {each.case for each in unexplained if each.metric in about}
        aside = {each.case for each, _ in explained if each.metric in about} - wrong
        agreed, of = compared - len(wrong) - len(aside), compared - len(aside)
        share = agreed / of if of else 0.0
        falls_short = metric.least is not None and share < metric.least
        tallies.append(MetricTally(metric, agreed, of, share, falls_short))
    not_comparable = tuple((each.case, each.simulated) for each in unexplained if each.metric == CASE)
    comparable = compared / max(1, compared + len(not_comparable))
    return RecordingAgreement(
        recording=recorded.environment,
        tallies=tuple(tallies),
        disagreements=tuple(each for each in unexplained if each.metric != CASE),
        explained=explained,
        not_comparable=not_comparable,
        not_recorded=tuple(not_recorded.items()),
        compared=compared,
        comparable=comparable,
        falls_short=comparable < LEAST_COMPARABLE or any(tally.falls_short for tally in tallies),
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
        for metric in METRICS:
            allowed = tolerance if metric.name == "peak_bytes" else 0
            pairs = {n: (recorded["counts"].get(n, 0), simulated["counts"].get(n, 0)) for n in metric.counts}
            differing = {n: pair for n, pair in pairs.items() if abs(pair[1] - pair[0]) > allowed * pair[0]}
            if differing:
                one = ", ".join(f"{n} {recorded_count}" for n, (recorded_count, _) in differing.items())
                other = ", ".join(f"{n} {simulated_count}" for n, (_, simulated_count) in differing.items())
                yield CaseDisagreement(id_, metric.name, one, other, unsure)
    elif (expected := _ending(recorded)) != (actual := _ending(simulated)):
        yield CaseDisagreement(id_, ENDING, expected, actual)


def _ending(case: Mapping[str, Any]) -> str:
    """How a case ended: of an error only the type must agree, since messages differ."""
    if "error" in case:
        return str(case["error"]).partition(":")[0]
    return "counted" if "counts" in case else next(f"{kind}: {case[kind]}" for kind in ("lost", "not_run"))
