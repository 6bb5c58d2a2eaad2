"""How far the simulation agrees with a recording, by metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simcuda.recording import versions
from simcuda.recording.file import Recording
from simcuda.recording.measuring import COUNTS
from simcuda.recording.selection import GROUP_NAMES
from simcuda.recording.verifiers import group_name
from simcuda.recording.versions import CASE, ENDING, Disagreement

PEAK_TOLERANCE = 0.01
"""The share by which a requested peak may be off."""

LEAST_COMPARABLE = 0.9
"""The share of the recorded cases that must still be there, and the same; with fewer, record again."""

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Metric:
    """Counts that agree or disagree together.

    Attributes:
        name: Its own name.
        counts: The counts that must all agree.
        least: The share of cases in which they must; None where that is for information only.
    """

    name: str
    counts: tuple[str, ...]
    least: float | None


METRICS = (
    Metric("syncs", ("stream_syncs", "event_syncs", "device_syncs"), 0.99),
    Metric("copies", tuple(name for name in COUNTS if name[:3] in ("h2d", "d2h", "d2d", "p2p")), 0.99),
    Metric("peak_bytes", ("peak_bytes",), 0.95),
    Metric("launches", ("launches",), 0.90),
    Metric("implicit_syncs", ("implicit_syncs",), None),
    Metric("allocations", ("allocations",), None),
)


@dataclass(frozen=True)
class Tally:
    """In how many of the compared cases a metric agrees."""

    metric: Metric
    agreed: int
    compared: int

    @property
    def share(self) -> float:
        """From 0 to 1; of nothing, 0."""
        return self.agreed / self.compared if self.compared else 0.0

    @property
    def falls_short(self) -> bool:
        """Whether too few cases agree."""
        return self.metric.least is not None and self.share < self.metric.least


@dataclass(frozen=True)
class Agreement:
    """What comparing a recording with the simulation showed.

    Attributes:
        recording: Which recording, by its environment.
        tallies: One for each metric.
        disagreements: Counts and endings that differ.
        explained: Those that a difference of torch versions explains, each with the reason; not tallied.
        not_comparable: Recorded cases that are not there any more, or are others now, each with the reason.
        not_recorded: Cases for which the recording has nothing, each with the reason.
        compared: Number of cases that were compared.
    """

    recording: Mapping[str, Any]
    tallies: tuple[Tally, ...]
    disagreements: tuple[Disagreement, ...]
    explained: tuple[tuple[Disagreement, str], ...]
    not_comparable: tuple[tuple[str, str], ...]
    not_recorded: tuple[tuple[str, str], ...]
    compared: int

    @property
    def comparable(self) -> float:
        """The share of the recorded cases that could be compared, from 0 to 1."""
        return self.compared / max(1, self.compared + len(self.not_comparable))

    @property
    def falls_short(self) -> bool:
        """Whether a metric agrees in too few cases, or too few cases can be compared."""
        return self.comparable < LEAST_COMPARABLE or any(tally.falls_short for tally in self.tallies)


def compare(recorded: Recording, simulated: Recording, tolerance: float = PEAK_TOLERANCE) -> Agreement:
    """Compare case by case what the simulation was asked for.

    Args:
        recorded: The recording.
        simulated: What the simulation makes of the same selection, or of a part of it.
        tolerance: The share by which a requested peak may be off.
    """
    selects = simulated.selection.has
    explain = versions.explanations(recorded.environment["torch"], simulated.environment["torch"])
    not_recorded = dict(_not_recorded(recorded, simulated))
    ids = [id_ for id_ in recorded.cases if selects(id_) and id_ not in not_recorded]
    found = [
        (disagreement, explain(disagreement))
        for id_ in ids
        for disagreement in _disagreements(id_, recorded.cases[id_], simulated.cases.get(id_), tolerance)
    ]
    changed = {disagreement.case for disagreement, _ in found if disagreement.metric == CASE}
    explained = tuple((disagreement, why) for disagreement, why in found if why)
    unexplained = [disagreement for disagreement, why in found if not why]
    compared = len(ids) - len(changed)
    return Agreement(
        recording=recorded.environment,
        tallies=tuple(_tally(metric, compared, unexplained, explained) for metric in METRICS),
        disagreements=tuple(each for each in unexplained if each.metric != CASE),
        explained=explained,
        not_comparable=tuple((each.case, each.simulated) for each in unexplained if each.metric == CASE),
        not_recorded=tuple(not_recorded.items()),
        compared=compared,
    )


def _not_recorded(recorded: Recording, simulated: Recording) -> Iterator[tuple[str, str]]:
    """Cases that one of the two recordings has no result for, with the reason."""
    selects = simulated.selection.has
    for suite, why in simulated.left_out.items():
        beginning = GROUP_NAMES.get(suite) or group_name(Path(suite))
        for id_ in recorded.cases:
            if selects(id_) and id_.startswith(f"{beginning}/") and id_ not in simulated.cases:
                yield id_, f"not simulated: {why}"
    for id_, case in recorded.cases.items():
        if selects(id_) and (reason := case.get("lost") or case.get("not_run")):
            yield id_, reason
    for id_ in simulated.cases:
        if id_ not in recorded.cases:
            yield id_, "not in the recording"


def _disagreements(
    id_: str, recorded: Mapping[str, Any], simulated: Mapping[str, Any] | None, tolerance: float
) -> Iterator[Disagreement]:
    if simulated is None:
        yield Disagreement(id_, CASE, "recorded", "there is no such case any more")
    elif recorded["digest"] != simulated.get("digest", recorded["digest"]):
        yield Disagreement(id_, CASE, "recorded", "another case has this id now")
    elif "counts" in recorded and "counts" in simulated:
        unsure = tuple(sorted({*simulated.get("unknown", ()), *simulated.get("approximate", ())}))
        for metric in METRICS:
            yield from _in_counts(id_, metric, recorded["counts"], simulated["counts"], tolerance, unsure)
    elif (expected := _ending(recorded)) != (actual := _ending(simulated)):
        yield Disagreement(id_, ENDING, expected, actual)


def _in_counts(
    id_: str, metric: Metric, recorded: Counts, simulated: Counts, tolerance: float, unsure: tuple[str, ...]
) -> Iterator[Disagreement]:
    allowed = tolerance if metric.name == "peak_bytes" else 0
    expected = {name: recorded.get(name, 0) for name in metric.counts}
    actual = {name: simulated.get(name, 0) for name in metric.counts}
    differing = [
        name for name in metric.counts if abs(actual[name] - expected[name]) > allowed * expected[name]
    ]
    if differing:
        yield Disagreement(id_, metric.name, _text(expected, differing), _text(actual, differing), unsure)


def _text(counts: Counts, names: Iterable[str]) -> str:
    return ", ".join(f"{name} {counts[name]}" for name in names)


def _ending(case: Mapping[str, Any]) -> str:
    """How a case ended, so far as that must agree: messages differ where the kind of error does not."""
    if "error" in case:
        return str(case["error"]).partition(":")[0]
    return "counted" if "counts" in case else next(f"{kind}: {case[kind]}" for kind in ("lost", "not_run"))


def _tally(
    metric: Metric,
    compared: int,
    unexplained: Iterable[Disagreement],
    explained: Iterable[tuple[Disagreement, str]],
) -> Tally:
    """A case that ended otherwise agrees in no metric."""
    about = (metric.name, ENDING)
    wrong = {each.case for each in unexplained if each.metric in about}
    aside = {each.case for each, _ in explained if each.metric in about} - wrong
    return Tally(metric, compared - len(wrong) - len(aside), compared - len(aside))
