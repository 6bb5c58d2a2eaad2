"""The result of verifying a ticket: samples, laws, sites, claims and the verdict."""

from __future__ import annotations

from typing import Literal

from pydantic import Field as Default

from finding_tickets.model.ticket import Record
from finding_tickets.model.vocabulary import Verdict


class Sample(Record):
    """The cost of one variant at one point of the sweep.

    ``error`` is how the variant ended where it raised; its metrics then count up to the exception. Those
    that contain modelled numbers have ``ranges``: the least and the most, None where nobody knows.
    """

    at: dict[str, int]
    metrics: dict[str, int]
    error: str | None = None
    ranges: dict[str, tuple[int, int | None]] = Default(default_factory=dict)


class SiteLaw(Record):
    """A line of user code that waits, copies or allocates, and the law by which it does.

    ``what`` is the metric that grows here. Where no law could be identified, ``law`` is None and ``growth``
    is what is known instead, as in ``VariantResult``. ``code`` is the line as it was measured.
    """

    file: str
    line: int
    function: str
    what: str
    law: str | None
    growth: str | None = None
    code: str = ""


class OperationCost(Record):
    """The cost of one operation of PyTorch in one run, and its source in the words of docs/truth.md."""

    operation: str
    costs: dict[str, int]
    rests_on: str


class VariantResult(Record):
    """Everything measured for one variant.

    ``laws`` has no entry for a metric without an exact law; ``growth`` then has the laws that fit equally
    well, or else the range: ``no law, 6..23``. ``modelled`` are the metrics with a range in some sample.
    ``operations`` are those of the last point, the heaviest first, if they were asked for. Evidence has
    neither these nor samples.
    """

    laws: dict[str, str]
    growth: dict[str, str] = Default(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    sites: tuple[SiteLaw, ...] = ()
    modelled: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    approximate: tuple[str, ...] = ()
    operations: tuple[OperationCost, ...] = ()


class Contradiction(Record):
    """A statement that contradicts a claim about a place, in a sentence.

    ``what`` it does is a metric; a statement that waits still has no ``code``. What is wrong with those that
    were moved is of no statement alone.
    """

    what: str
    text: str
    file: str = ""
    line: int = 0
    code: str = ""

    @property
    def place(self) -> str:
        """Return where the statement is."""
        return f"{self.file}:{self.line}"

    @property
    def is_new(self) -> bool:
        """Return True if the statement did not wait before."""
        return bool(self.code)


class ClaimResult(Record):
    """A claim and its measurement; ``holds`` is None if it could not be checked.

    ``counterexamples`` are the points at which it fails, with the value measured there. A claim that is
    ``modelled`` might come out otherwise on a GPU: modelled numbers decide it. ``said`` tells why one
    about a place is false, and ``below`` are the counterexamples that are no more than claimed; neither
    evidence nor JSON has these.
    """

    id: str
    variant: str
    metric: str
    claimed: str
    measured: str
    holds: bool | None
    expect: Literal["holds", "refuted"] = "holds"
    why: str | None = None
    counterexamples: tuple[str, ...] = ()
    modelled: bool = False
    said: tuple[Contradiction, ...] = Default(default=(), exclude=True)
    below: tuple[str, ...] = Default(default=(), exclude=True)

    @property
    def contradicted(self) -> str:
        """Return what contradicts a claim about a place, in words."""
        return "; ".join(each.text for each in self.said)

    @property
    def as_expected(self) -> bool:
        """Return True if the outcome is the expected one; an unchecked claim has none."""
        return self.holds is (self.expect == "holds")

    @property
    def is_surprise(self) -> bool:
        """Return True if the claim was checked and the outcome is not the expected one."""
        return self.holds is not None and not self.as_expected


class NotMeasured(Record):
    """A point of the sweep that this meter could not run, and why."""

    at: dict[str, int]
    why: str


class ResultCheck(Record):
    """The comparison of two results at one point: equal, unless ``difference`` or ``skipped`` is given.

    The ``target`` is the variant whose results are expected; a point at which it raised is skipped. Equal
    results that show nothing are ``empty``, ``None`` or ``NaN``. What is ``left_out`` differs, and is
    accepted, or differs between two runs of the target.
    """

    variant: str
    target: str
    tolerance: float | None = None
    at: dict[str, int]
    difference: str | None = None
    skipped: bool = False
    empty: str | None = None
    left_out: tuple[str, ...] = ()


class MeasuredTicket(Record):
    """The measurement of one ticket on one meter, before any claim is judged.

    ``compares`` tells whether the workload compares results in its own way. ``further`` are the points of the
    sweep that no file states. Of a ticket about a place, ``lines`` has where it stands in each variant, and
    ``elsewhere`` what waits against the claim. ``dearer`` is what a fix costs more in all, of what is run.
    """

    meter: str
    torch: str
    device: str
    sweep: tuple[dict[str, int], ...]
    variants: dict[str, VariantResult]
    agreements: tuple[ResultCheck, ...] = ()
    not_measured: tuple[NotMeasured, ...] = ()
    compares: bool = False
    further: tuple[dict[str, int], ...] = ()
    lines: dict[str, str] = Default(default_factory=dict)
    elsewhere: tuple[Contradiction, ...] = ()
    dearer: tuple[str, ...] = ()


class CallCost(Record):
    """The cost of a call, or of several that cost the same.

    ``sites`` are file, line, function, metric and count; ``allowed`` has what ``simcuda.allowed`` set apart
    of these, with the reason in front.
    """

    metrics: dict[str, int]
    ranges: dict[str, tuple[int, int | None]] = Default(default_factory=dict)
    sites: tuple[tuple[str, int, str, str, int], ...]
    allowed: tuple[tuple[str, str, int, str, str, int], ...] = ()


class MeasuredRun(CallCost):
    """The measurement of one run of the target of a ticket or a budget.

    For a budget, ``largest`` has the bytes of the largest request for memory by file, line and function, and
    ``repeated`` the lines that loops or threads led to. If calls of a function count, ``calls`` are their
    different costs, and ``order`` has for each call the place of its cost among them. For a ticket about a
    place, ``chains`` are the calls by which lines were reached.
    """

    meter: str
    torch: str
    device: str
    at: dict[str, int]
    unknown: tuple[str, ...]
    approximate: tuple[str, ...]
    error: str | None
    operations: tuple[OperationCost, ...] = ()
    largest: tuple[tuple[str, int, str, int], ...] = ()
    repeated: tuple[tuple[str, int, str], ...] = ()
    calls: tuple[CallCost, ...] = ()
    order: tuple[int, ...] = ()
    chains: tuple[tuple[str, int, str, str], ...] = ()


class Verification(Record):
    """One ticket, measured once in one environment (meter, torch, device).

    ``further`` are points that no file states; neither evidence nor JSON has them.
    """

    ticket: str
    verdict: Verdict
    reason: str
    meter: str
    torch: str
    device: str
    sweep: tuple[dict[str, int], ...]
    variants: dict[str, VariantResult]
    claims: tuple[ClaimResult, ...]
    not_measured: tuple[NotMeasured, ...] = ()
    further: tuple[dict[str, int], ...] = Default(default=(), exclude=True)

    @property
    def is_settled(self) -> bool:
        """Return True if there is a verdict and every claim has the expected outcome."""
        is_open = self.verdict in {Verdict.INCONCLUSIVE, Verdict.UNVERIFIED}
        return not is_open and all(claim.as_expected for claim in self.claims)


class Input(Record):
    """Something that a verification depends on.

    ``value`` is the SHA-256 of a file, the names in a folder, the commit of a revision, a version, or the
    digest of the Remediation.
    """

    kind: Literal["file", "folder", "commit", "version", "remediation"]
    name: str
    value: str


class Evidence(Record):
    """A verification and the inputs it depends on."""

    inputs: tuple[Input, ...]
    verification: Verification
