"""The documents of a report: what each states, what was measured of it, and how the two go together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from finding_tickets.model.problem import Problem
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.vocabulary import Opinion, Severity, Vocabulary
from finding_tickets.register import row as register
from finding_tickets.register.config import Config
from finding_tickets.register.disposition import UNDECIDED, disposed, filed_as, is_fixed
from finding_tickets.register.particulars import NONE, Claimed, Particulars
from finding_tickets.register.query import Facts, Measured
from finding_tickets.report.measured import AFTER, BEFORE, Change, changes

if TYPE_CHECKING:
    from finding_tickets.model.verification import Verification

REVIEW = "review"
SEVERITIES = (*Severity, UNDECIDED, REVIEW)
"""The severities of documents, the worst first, and what those without one are counted as."""
UNNAMED = "not named"
ENDORSED, OBJECTED, SPLIT, NO_SIDE, NOT_REVIEWED = "endorsed", "objected", "split", "no side", "not reviewed"
CONSENSUS = (ENDORSED, OBJECTED, SPLIT, NO_SIDE, NOT_REVIEWED, REVIEW)
SIDES: Mapping[str, bool] = {Opinion.ENDORSE: True, Opinion.REFINE: True, Opinion.OBJECT: False}
"""The opinions that take a side: whether they say that there is something to what the finding claims."""

UNPROVEN_RULE = "closed-without-evidence"
REFUTED_RULE = "fixed-but-refuted"
_AGAINST = {Verdict.FAILED, Verdict.REFUTED}
_OPEN_ENDED = {Verdict.STALE, Verdict.INCONCLUSIVE, Verdict.UNVERIFIED}


@dataclass(frozen=True, slots=True)
class Row:
    """One document of the report.

    Attributes:
        stated: What the document says of itself, as lists and queries know it.
        measured: Its verdict, and the verification that comes from if there is one.
        severity: ``P0`` to ``P4``, ``not stated``, or ``review`` for an implementation review.
        disposition: What people decided, ``not stated``, or ``review``.
        consensus: What its reviewers say together: ``endorsed`` or ``objected`` where all who take a side
            take the same one, ``split``, ``no side``, ``not reviewed``, or ``review``.
        claimed: What its remediation claims of each metric, before and after the fix.
        changes: The laws of each metric that is claimed, before and after the fix.
        contradictions: Where lint finds that the document contradicts itself, or its own measurement.
        is_unproven: Whether it was closed as fixed and nothing shows that it was.
        ignored: The lint rules that it has a comment to ignore.
    """

    stated: register.Row
    measured: Measured
    severity: str
    disposition: str
    consensus: str = NOT_REVIEWED
    claimed: tuple[Change, ...] = ()
    changes: tuple[Change, ...] = ()
    contradictions: tuple[Problem, ...] = ()
    is_unproven: bool = False
    ignored: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The ID, as the register spells it."""
        return self.stated.id

    @property
    def title(self) -> str:
        """The title, without the words that only say what kind of document it is."""
        return self.stated.title

    @property
    def path(self) -> str:
        """The file, from the register's root."""
        return self.stated.path

    @property
    def is_finding(self) -> bool:
        """Whether it is a finding and no implementation review."""
        return self.stated.kind == "finding"

    @property
    def verdict(self) -> Verdict:
        """What was measured."""
        return self.measured.verdict

    @property
    def verification(self) -> Verification | None:
        """The verification that the verdict comes from."""
        return self.measured.verification

    @property
    def reason(self) -> str:
        """Why the verdict is what it is; empty without a verification."""
        return self.verification.reason if self.verification else ""

    @property
    def disagreement(self) -> str:
        """The verdicts of meters that differ; empty where they do not."""
        return self.measured.disagreement or ""

    @property
    def opinions(self) -> Mapping[str, str]:
        """What each reviewer of a finding said last, by their names."""
        return {name or UNNAMED: said for name, said in self.stated.reviews} if self.is_finding else {}

    @property
    def holds(self) -> bool | None:
        """Whether the finding is true: every claim about the code as found holds; None where nobody knows.

        A verdict that is stale, inconclusive or not there says nothing of it, nor does one on the fix alone.
        """
        if self.verification is None or self.verdict in _OPEN_ENDED:
            return None
        held = [claim.holds for claim in self.verification.claims if claim.variant == BEFORE]
        if False in held:
            return False
        return True if held and None not in held else None


def rows_of(
    facts: Facts, chosen: Iterable[register.Row], particulars: Mapping[str, Particulars]
) -> Iterator[Row]:
    """The rows of a report; ``particulars`` are by the paths of the documents that have some."""
    wanted = _wanted(facts.config)
    for stated in chosen:
        told = particulars.get(stated.path, NONE)
        row = row_of(stated, facts.measured(stated), told, facts.config.vocabulary)
        found = [*row.contradictions, *_against_measurement(row, facts)]
        yield replace(
            row,
            contradictions=tuple(problem for problem in found if wanted(problem.rule)),
            is_unproven=row.is_unproven and wanted(UNPROVEN_RULE),
        )


def row_of(
    stated: register.Row,
    measured: Measured,
    particulars: Particulars = NONE,
    vocabulary: Vocabulary = Vocabulary(),  # noqa: B008 - frozen
) -> Row:
    """The row of one document, by what is in it."""
    finding = stated.kind == "finding"
    return Row(
        stated=stated,
        measured=measured,
        severity=(stated.severity or UNDECIDED) if finding else REVIEW,
        disposition=disposed(stated.status, stated.outcome) if finding else REVIEW,
        consensus=_consensus(stated) if finding else REVIEW,
        claimed=tuple(_claimed(particulars.claims)),
        changes=tuple(changes(measured.verification)) if measured.verification else (),
        contradictions=particulars.contradictions,
        is_unproven=_is_unproven(stated, measured, particulars, vocabulary),
        ignored=particulars.ignored,
    )


def _consensus(stated: register.Row) -> str:
    if not stated.reviews:
        return NOT_REVIEWED
    sides = {SIDES[said] for _, said in stated.reviews if said in SIDES}
    if len(sides) == 1:
        return ENDORSED if True in sides else OBJECTED
    return SPLIT if sides else NO_SIDE


def _claimed(claims: Collection[Claimed]) -> Iterator[Change]:
    """The claims about the code before and after the fix, those about one metric together."""
    for metric in dict.fromkeys(claim.metric for claim in claims if claim.variant in {BEFORE, AFTER}):
        yield Change(metric, *(_together(claims, variant, metric) for variant in (BEFORE, AFTER)))


def _together(claims: Collection[Claimed], variant: str, metric: str) -> str | None:
    """What is claimed at every point; where nothing is, all claims with their points."""
    about = [claim for claim in claims if (claim.variant, claim.metric) == (variant, metric)]
    everywhere = [claim.text for claim in about if not claim.where]
    return " and ".join(everywhere) or "; ".join(claim.text for claim in about) or None


def _is_unproven(
    stated: register.Row, measured: Measured, particulars: Particulars, vocabulary: Vocabulary
) -> bool:
    shown = stated.done or measured.verification or measured.problem or UNPROVEN_RULE in particulars.ignored
    filed = filed_as(stated.path, vocabulary)
    return not shown and stated.kind == "finding" and is_fixed(stated.status, stated.outcome, filed)


def _against_measurement(row: Row, facts: Facts) -> Iterable[Problem]:
    """What lint says of a ticket that was closed as fixed against its measurement; few have to be read."""
    filed = filed_as(row.path, facts.config.vocabulary)
    if not (row.verification and is_fixed(row.stated.status, row.stated.outcome, filed)):
        return ()
    return _breaches(row, facts) if row.verification.verdict in _AGAINST else ()


def _breaches(row: Row, facts: Facts) -> Iterator[Problem]:
    from finding_tickets.lint.engine import examine, source_of
    from finding_tickets.lint.rules import RULES, Context
    from finding_tickets.register.load import Register

    document = facts.document(row.stated)
    if document is None:
        return
    alone = Register(facts.root, facts.config, (document,), ())
    found = examine(source_of(alone, document), document, (), Context(alone), [RULES[REFUTED_RULE]])
    yield from (breach.problem for breach in found if breach.problem.rule == REFUTED_RULE)


def _wanted(config: Config) -> Callable[[str], bool]:
    """Whether the configuration has lint look at a rule."""
    selected = config.lint_select
    return lambda rule: (selected is None or rule in selected) and rule not in config.lint_ignore
