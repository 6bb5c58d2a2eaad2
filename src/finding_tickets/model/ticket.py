"""The two kinds of document, finding tickets and implementation reviews, and what they are made of.

Records are frozen pydantic models, whose values remember where they stand in their file.
"""

from __future__ import annotations

from typing import Generic, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, PositiveInt, model_validator
from pydantic_core import PydanticCustomError

from finding_tickets.errors import BadDataError
from finding_tickets.ground.statements import Statement, normalize
from finding_tickets.model.vocabulary import (
    OUTCOME,
    Level,
    Opinion,
    Outcome,
    Relationship,
    Severity,
    Status,
    squeeze,
)

T = TypeVar("T")


class Record(BaseModel):
    """A frozen value; unknown fields are refused."""

    # Validators are built on first use, so that importing the models costs next to nothing.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Span(NamedTuple):
    """A half-open range of byte offsets ``[start, end)`` in a file, and the line (from 1) it starts on."""

    start: int
    end: int
    line: int


class Text(Record):
    """A piece of a file as it was written: ``raw`` is exactly the bytes of ``span``, decoded."""

    raw: str
    span: Span


class Field(Text, Generic[T]):
    """A piece of a file with the value read from it."""

    value: T


class Problem(Record):
    """One message about one place.

    ``file`` is relative to the register's root; ``line`` and ``column`` count from 1, columns in characters.
    A column of 1 may also mean the line as a whole.
    """

    level: Level
    rule: str
    file: str
    line: int
    column: int = 1
    message: str
    hint: str | None = None

    @property
    def as_error(self) -> BadDataError:
        """The error to raise where nothing can be done about it."""
        return BadDataError(
            self.message, file=self.file, line=self.line, hint=self.hint
        )

    @property
    def said(self) -> str:
        """The message, and behind it what to do."""
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __str__(self) -> str:
        """One line, the way compilers print it, so that editors can jump to the place."""
        return f"{self.file}:{self.line}:{self.column}: {self.level} [{self.rule}] {self.said}"


class LineRange(Record):
    """Lines ``first`` to ``last`` of a source file, both included, from 1."""

    first: int
    last: int


class Location(Text):
    """One place in the code a ticket speaks of; what is not stated is None or empty.

    ``symbol`` is what is written, ``symbols`` are the names within it: ``A.f`` and ``g`` for
    ``A.f(), g() in the loop``.
    """

    file: str | None
    lines: tuple[LineRange, ...]
    symbol: str | None
    symbols: tuple[str, ...]


class Category(Text):
    """One line of the category checklist."""

    name: str
    ticked: bool


class Review(Text):
    """One cross-review; ``opinion`` is None where the verdict is not one of the vocabulary.

    ``reviewer`` has the register's word for the reviewer as its value, and is None where nobody is named.
    ``condition`` is what the verdict adds to its opinion: ``with caveat``. ``remarks`` are what the reviewer
    writes beside the evaluation.
    """

    reviewer: Field[str] | None
    verdict: Field[str]
    opinion: Opinion | None
    condition: str
    evaluation: Text | None
    remarks: tuple[Text, ...]
    date: Field[str] | None

    @property
    def words(self) -> str | None:
        """The evaluation and the remarks, in paragraphs; None where there is neither."""
        pieces = [
            text.raw for text in (self.evaluation, *self.remarks) if text and text.raw
        ]
        return "\n\n".join(pieces) if pieces else None


class Relation(Text):
    """A link to another ticket; ``relationship`` is ``related`` where the ticket does not say."""

    id: str
    relationship: Relationship
    note: str


class ChecklistItem(Text):
    """One line of a checklist: of the verification's, or of one in the resolution."""

    text: str
    done: bool


class CodeBlock(Text):
    """A fenced block: its language, its content and, where its first comment names one, the code's place.

    ``places`` are all places that comments of the block name, each with its file, lines or both.
    """

    language: str
    code: str
    location: str | None
    places: tuple[Location, ...]


class ReportLink(Text):
    """The first report of a finding: a file and a section of it."""

    file: str
    section: str


class Resolution(Text):
    """The section about the resolution of a ticket; ``outcome`` is None if it states none.

    ``proposed`` marks what was recommended when the ticket was filed and that nobody has acted upon: the
    ticket is not closed, and the section has neither a statement nor a date. ``duplicate_of`` is the ID of
    the ticket that this one repeats.
    """

    outcome: Outcome | None
    proposed: bool
    duplicate_of: str | None


class SeverityChange(Text):
    """A severity that was looked at again; ``original`` is None where only the new one is stated."""

    original: Severity | None
    revised: Severity

    @property
    def confirmed(self) -> bool:
        """Return True if the severity did not change."""
        return self.original is self.revised


class CheckedClaim(Text):
    """A row of a table of claims, and whether a reviewer found it true; ``holds`` is None if undecided.

    ``status`` is the finding as written, ``evidence`` what it rests on.
    """

    claim: str
    status: str
    holds: bool | None
    evidence: str


class Correction(Text):
    """A section that takes back or mends an earlier fix; ``statement`` is what it says of its status."""

    title: str
    date: str | None
    statement: Text | None


class Section(Record):
    """A heading and all bytes up to the next heading of its level or above; every byte of a file is in one.

    ``level`` is 0 for what precedes the first heading.
    """

    level: int
    title: str
    heading: Span
    body: Text
    known: bool


class VariantRef(Record):
    """The place of a function: ``path.py:function`` or ``package.module:function``, at a revision.

    Of a ticket with ``run`` it is all code of a revision, or of the work tree for ``@worktree``: ``module``
    and ``function`` are empty.
    """

    raw: str
    module: str
    function: str
    revision: str | None
    line: int


class RunCommand(Record):
    """The target of a ticket: a script, a module, a function or a test of pytest.

    ``target`` is its path or dotted name, with ``:function`` or ``::test`` behind it, and ``arguments`` is
    the rest, split as a shell would split it. ``{name}`` stands for a variable of the sweep in both.
    """

    raw: str
    kind: Literal["script", "module", "function", "test"]
    target: str
    arguments: tuple[str, ...]
    line: int


class StatementRef(Record):
    """A statement by its file, its function, with the class in front, and its code, never by its line.

    ``function`` is empty at module level. ``occurrence``, from 1, tells equal statements of a function apart.
    ``line`` is that of the ticket.
    """

    file: str
    function: str = ""
    code: str
    occurrence: PositiveInt | None = None
    line: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Return what tells it from other statements."""
        return self.file, self.function, normalize(self.code), self.occurrence or 0

    @property
    def statement(self) -> Statement:
        """Return it as a statement of code without a known line."""
        return Statement(self.file, 0, self.function, self.code)

    @property
    def stated(self) -> dict[str, str]:
        """Return what a ticket says of it."""
        function = {"function": self.function} if self.function else {}
        return {"file": self.file, **function, "code": self.code}


class Claim(Record):
    """One value claimed for one metric of one variant.

    ``id`` is ``variant.metric``, with ``[n]`` (from 0) where the metric has several values. ``value`` is an
    expression, a comparison, a range or a growth class, as written. ``at`` restricts the claim to the points
    of the sweep at which every named variable satisfies its condition. ``tolerance`` belongs to
    ``same_result_as`` alone, where ``value`` names the other variant.
    """

    id: str
    variant: str
    metric: str
    value: str
    at: dict[str, str]
    expect: Literal["holds", "refuted"]
    why: str | None
    tolerance: float | None
    line: int

    @property
    def text(self) -> str:
        """The value, and where it is claimed."""
        where = ", ".join(f"{name} {condition}" for name, condition in self.at.items())
        return f"{self.value} where {where}" if where else self.value


class Unmeasured(Record):
    """A numeric claim of the ticket that is not measured, and why."""

    claim: str
    why: str
    line: int


class Answer(Record):
    """The answer to one item of the checklist: the ids of claims, or the reason why no claim can."""

    item: str
    claims: tuple[str, ...] = ()
    why: str | None = None
    line: int

    @model_validator(mode="after")
    def _answers(self) -> Answer:
        if not (self.claims or self.why):
            raise PydanticCustomError(
                "answer", "an answer names claims, or why there are none"
            )
        return self


class Remediation(Record):
    """The Remediation block of a ticket; what it leaves out follows from the convention of the house.

    ``path`` is the file that it stands in, the ticket's own or one beside it, ``span`` where it is there, and
    ``digest`` the SHA-256 of what it was read from.
    ``verifier`` and ``variants`` are the block's own: empty where the convention (``verifiers/<id>.py``,
    ``fixes/<id>/*.py``) applies. ``variants`` keeps the order of the block. In the place of a verifier there
    may be a command to ``run``, the points of its ``sweep`` and the function ``within`` which it is counted.
    With a ``place``, claims are about that statement of what runs; ``moved`` are statements of the fix that
    wait in its stead.
    ``differs`` names what may be another one after the fix, of what is run, and ``data`` files and folders of
    the work tree that it needs and that git has not.
    """

    verifier: str | None
    run: RunCommand | None = None
    sweep: tuple[dict[str, int], ...] = ()
    within: str | None = None
    place: StatementRef | None = None
    moved: tuple[StatementRef, ...] = ()
    differs: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    variants: dict[str, VariantRef]
    decision: Literal["fix", "keep"]
    claims: tuple[Claim, ...]
    unmeasured: tuple[Unmeasured, ...]
    checklist: tuple[Answer, ...]
    path: str
    span: Span
    digest: str

    @property
    def claim_names(self) -> frozenset[str]:
        """Return the names for answers: claims, metrics with several values, and an equal result."""
        names = {
            name
            for each in self.claims
            for name in (each.id, f"{each.variant}.{each.metric}")
        }
        # A test says by itself what is right.
        if self.run and self.run.kind != "test":
            names.add(OUTCOME)
        return frozenset(names)

    @property
    def moved_as_stated(self) -> list[dict[str, str]]:
        """Return the statements that wait in the stead of the place, as the ticket states them."""
        return [each.stated for each in self.moved]

    def answer_to(self, item: str) -> Answer | None:
        """The answer to an item of the checklist, compared without case, markup and punctuation."""
        wanted = squeeze(item)
        return next(
            (answer for answer in self.checklist if squeeze(answer.item) == wanted),
            None,
        )


class Ticket(Record):
    """A finding ticket. ``path`` is relative to the register's root; a field that is not there is None.

    A value that comes from the file's name has an empty span. ``closed`` is when the ticket was resolved, as
    it is written.
    """

    kind: Literal["finding"] = "finding"
    path: str
    id: Field[str]
    title: Field[str]
    metadata: dict[str, Text]
    # None: the ticket has no such value. A field whose value is None: what it has is no word of the register.
    severity: Field[Severity | None] | None
    status: Field[Status | None] | None
    outcome: Field[Outcome | None] | None
    batch: Field[int | None] | None
    agent: Field[str] | None
    domains: tuple[Field[str], ...]
    assignee: Field[str] | None
    created: Field[str] | None
    updated: Field[str] | None
    code_repository: Field[str] | None
    locations: tuple[Location, ...]
    summary: Text | None
    categories: tuple[Category, ...]
    evidence: tuple[CodeBlock, ...]
    recommended_fix: Text | None
    checklist: tuple[ChecklistItem, ...]
    related: tuple[Relation, ...]
    reviews: tuple[Review, ...]
    resolution: Resolution | None
    closed: Field[str] | None
    severity_changes: tuple[SeverityChange, ...]
    checked_claims: tuple[CheckedClaim, ...]
    corrections: tuple[Correction, ...]
    reports: tuple[ReportLink, ...]
    remediation: Remediation | None
    sections: tuple[Section, ...]


# An implementation review: what a reviewer says of a change.


class Commits(Text):
    """The range of commits under review; ``base`` is None where only one is named."""

    base: str | None
    head: str


class Requirement(Text):
    """One requirement of the plan; ``implementation`` is empty where only the requirement is listed."""

    text: str
    implementation: str
    met: bool | None


class Issue(Text):
    """One issue found by the review, under the severity heading it stands under."""

    severity: str
    id: str
    title: str
    details: dict[str, str]


class Score(Text):
    """``value`` out of ``out_of`` for one quality; the overall score has the name ``overall``."""

    name: str
    value: float
    out_of: float
    remark: str


class PerformanceClaim(Text):
    """A sentence or figure by which the review claims an improvement."""

    text: str


class Artifact(Text):
    """A file, test or commit that the change made or touched, under its group's heading."""

    group: str
    name: str
    remark: str


class ImplementationReview(Record):
    """A review of a change. ``path`` is relative to the register's root; a field not there is None."""

    kind: Literal["review"] = "review"
    path: str
    id: Field[str]
    title: Field[str]
    metadata: dict[str, Text]
    reviewer: Field[str] | None
    date: Field[str] | None
    commits: Commits | None
    plan: Field[str] | None
    verdict: Field[str] | None
    code_repository: Field[str] | None
    requirements: tuple[Requirement, ...]
    issues: tuple[Issue, ...]
    issue_counts: dict[str, int]
    scores: tuple[Score, ...]
    performance_claims: tuple[PerformanceClaim, ...]
    artifacts: tuple[Artifact, ...]
    locations: tuple[Location, ...]
    evidence: tuple[CodeBlock, ...]
    checklist: tuple[ChecklistItem, ...]
    remediation: Remediation | None
    sections: tuple[Section, ...]
