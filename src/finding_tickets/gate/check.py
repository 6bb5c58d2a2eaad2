"""Measure the tickets of a branch by the verifiers and claims of its base, and compare."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from finding_tickets.claims.check import ONCE, at_text
from finding_tickets.claims.metrics import SYNCS
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.gate.branch import Base, changed_rules, find_fix
from finding_tickets.ground.git import GitError, ask, changed_files
from finding_tickets.ground.statements import Statement, find_statement, parse_file
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.measure.tasks import Further
from finding_tickets.model.ticket import Problem
from finding_tickets.model.verification import (
    ClaimResult,
    Contradiction,
    SiteLaw,
    Verification,
)
from finding_tickets.model.vocabulary import (
    ELSEWHERE,
    REMEDIATION_RULES,
    Level,
    Status,
    Verdict,
)
from finding_tickets.register.disposition import is_fixed, status_of
from finding_tickets.register.entries import outcome_of
from finding_tickets.register.files import DiskFiles
from finding_tickets.register.load import Register
from finding_tickets.register.staleness import Verdicts
from finding_tickets.verify.judge import FIX, FOUND, count_hazards, raced_text
from finding_tickets.verify.plan import BASE, EVERY, stated_in, verifier_of
from finding_tickets.verify.verify import (
    Planned,
    Settings,
    Verified,
    measure,
    plan_each,
)

WORSE, CHANGED, CLOSED, GONE = "gate-worse", "gate-changed", "gate-closed", "gate-gone"
AWARE, UNREAD, UNMEASURED, STALE = (
    "gate-aware",
    "gate-unread",
    "gate-unmeasured",
    "gate-stale",
)
CODES = {
    UNREAD: ExitCode.BAD_DATA,
    UNMEASURED: ExitCode.INCONCLUSIVE,
    "budget-unmeasured": ExitCode.INCONCLUSIVE,
}
# The names of sites behind a metric, where these are others.
SITES = {"syncs": SYNCS, ELSEWHERE: (*SYNCS, "hazards"), "peak_bytes": ("allocations",)}
OF_TESTS = re.compile(
    r"(?:.*/)?(?:tests?/.*|test_[^/]*\.py|[^/]*_test\.py|conftest\.py)"
)
UNPROVEN = {Verdict.UNVERIFIED, Verdict.REPRODUCED, Verdict.INCONCLUSIVE}
PROSE = (".md", ".rst")
MEASURING_CODE = {"simcuda", "finding_tickets"}


@dataclass
class Comparison:
    """The regressions since the base, in all and of a statement alone, and the improvements.

    ``site`` is the line that costs the first one of the whole.
    """

    worse: list[str] = field(default_factory=list)
    site: SiteLaw | None = None
    statements: list[Contradiction] = field(default_factory=list)
    better: list[str] = field(default_factory=list)


@dataclass
class CheckedTicket:
    """A ticket that the branch affects, measured now and perhaps at the base, with the problems."""

    document: Document
    is_accepted: bool  # by the command line
    old: Document | None = None  # at the base, if it could be measured there
    changes: Sequence[str] = ()  # in what it is measured by
    has_new_rules: bool = False  # whether its Remediation is another one
    must_hold: bool = (
        False  # closed as fixed by the branch, or by the rules of the branch
    )
    now: Verified = field(init=False)
    before: Verification | None = None
    compared: Comparison = field(default_factory=Comparison)
    problems: list[Problem] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Return the ID of the ticket."""
        return self.document.id.value

    @property
    def further(self) -> Further:
        """Return which points are added to the sweep."""
        # There is no fix to compare a new one with, and it may not be made for the edges.
        return "sizes" if self.must_hold or self.has_new_rules else "edges"

    def add(
        self,
        rule: str,
        message: str,
        hint: str | None = None,
        at: Contradiction | SiteLaw | Statement | BadDataError | None = None,
        level: Level = Level.ERROR,
    ) -> None:
        """Add a problem, at a place in the code or at the ticket."""
        file, line = self.document.path, 1
        if self.document.remediation:
            file, line = (
                self.document.remediation.path,
                self.document.remediation.span.line,
            )
        if at and at.file:
            file, line = at.file, at.line or 1
        self.problems.append(
            _problem(rule, file, line, f"{self.id}: {message}", hint, level)
        )


def decide(before: Verification | None, now: Verification) -> Comparison:
    """Compare a ticket as it is measured now with the same ticket at the base, if it was there.

    Every claim must hold now wherever it held before, unless it fails because less is spent. A claim that is
    new must hold.
    """
    compared = Comparison()
    if now.verdict is Verdict.INCONCLUSIVE and (
        before is None or before.verdict is not now.verdict
    ):
        compared.worse.append(now.reason)
        return compared
    # A hazard is new if neither the base nor the code as found has as many.
    known_hazards = count_hazards(before, FIX) if before else count_hazards(now, FOUND)
    if count_hazards(now, FIX) > known_hazards:
        sites = now.variants[FIX].sites
        compared.site = next((site for site in sites if site.what == "hazards"), None)
        message = (
            "accesses the same data from two streams without an order between them"
        )
        compared.worse.append(message + raced_text(sites))
    known = {claim.id: claim for claim in before.claims} if before else {}
    for claim in now.claims:
        if claim.as_expected:
            continue
        other = known.get(claim.id)
        known_codes = {each.code for each in other.said} if other else set()
        said = [each for each in claim.said if each.code not in known_codes]
        failures = [] if claim.said else _new_failures(claim, other, now)
        if not (said or failures):
            continue
        first = said[0].text if said else failures[0]
        # What has no sweep has no point to name.
        example = f" ({first})" if first and now.sweep != (ONCE,) else ""
        numbers = claim.counterexamples if said else failures
        if other and numbers and {*numbers} <= {*claim.below}:
            compared.better.append(
                f"{claim.id} is better than claimed, {claim.claimed}{example}"
            )
            continue
        compared.statements += said
        if said:
            continue
        reason = f"{claim.id} is claimed to be {claim.claimed}, and is {claim.measured}{example}"
        compared.worse.append(reason)
        compared.site = compared.site or _costly_site(before, now, claim)
    return compared


def check_tickets(
    base: Base,
    head: Register,
    accepted: Collection[str],
    isolation: Isolation,
    settings: Settings,
) -> list[CheckedTicket]:
    """Measure every ticket that the branch affects, and at the base what does not hold in the work tree.

    ``accepted`` are the IDs, in lower case, whose changes the command line accepts.
    """
    changed = branch_files(head.root, base.revision.commit)
    tickets = []
    excused = list(settings.excused)
    for document in head.documents:
        ticket = CheckedTicket(document, document.id.value.casefold() in accepted)
        if _is_affected(ticket, base, head, changed):
            tickets.append(ticket)
            if ticket.is_accepted or not ticket.changes:
                # Those of its fix are judged with it.
                excused += [each.statement for each in stated_in(document).moved]
    _measure(tickets, base, isolation, replace(settings, excused=tuple(excused)))
    for ticket in tickets:
        now = ticket.now.verification
        if now and not ticket.now.never_ran and (ticket.must_hold or ticket.before):
            ticket.compared = decide(ticket.before, now)
    _leave_out_repeated([ticket.compared for ticket in tickets])
    for ticket in tickets:
        _judge(ticket, base, head)
    stale = [
        each
        for each in tickets
        if head.measured(each.document).verdict is Verdict.STALE
    ]
    if stale:
        others = ", ".join(each.id for each in stale[1:])
        message = f"its evidence is out of date{others and f', and that of {others}'}"
        stale[0].add(STALE, message, "tickets verify --stale", level=Level.NOTE)
    return tickets


def _leave_out_repeated(compared: Sequence[Comparison]) -> None:
    """Keep each new wait of one ticket alone: a place that waits again is a new wait to other tickets."""
    told = {one.place for each in compared for one in each.statements if not one.is_new}
    for each in compared:
        each.statements = [
            one for one in each.statements if not one.is_new or one.place not in told
        ]
        told.update(one.place for one in each.statements)


def find_gone(
    base: Base, head: Register, accepted: Collection[str]
) -> Iterator[Problem]:
    """Yield the tickets of the base that could be measured there, and are not in the branch."""
    ids = {document.id.value.casefold() for document in head.documents} | set(accepted)
    for name, document in base.documents.items():
        if name not in ids and verifier_of(document, base.root):
            message = f"{document.id.value}: the ticket is gone"
            yield _problem(GONE, document.path, 1, message, _accept(document.id.value))


def find_unread(base: Base, head: Register) -> Iterator[Problem]:
    """Yield what cannot be read in the work tree, and could be read at the base."""
    known = {
        (each.file, each.message)
        for each in (base.register.problems if base.register else ())
    }
    for problem in head.problems:
        is_own = problem.level is Level.ERROR and not problem.rule.startswith(
            REMEDIATION_RULES
        )
        if is_own and (problem.file, problem.message) not in known:
            yield problem.model_copy(update={"rule": UNREAD})


def find_aware_code(base: Base, root: Path) -> Iterator[Problem]:
    """Yield where code of the branch asks whether it is measured: it names what measures in a string."""
    for file in sorted(branch_files(root, base.revision.commit)):
        if not file.endswith(".py") or OF_TESTS.fullmatch(file):
            continue
        known = _names_of_tool(base.root / file)
        for name, line in _names_of_tool(root / file).items():
            if name not in known:
                message = f"the code asks whether it is measured: {name!r}"
                yield _problem(
                    AWARE, file, line, message, "do the same work everywhere"
                )


def exit_code(problems: Iterable[Problem]) -> ExitCode:
    """Return the exit code for the problems of a branch."""
    rules = [problem.rule for problem in problems if problem.level is Level.ERROR]
    return ExitCode.worst(*(CODES.get(rule, ExitCode.GATE_FAILED) for rule in rules))


def counts_as_fixed(document: Document) -> bool:
    """Return True if people say of a ticket that it was fixed, or closed it without saying how."""
    status, outcome = status_of(document), outcome_of(document)
    is_closed = is_fixed(status or Status.CLOSED, outcome)
    return is_closed or (status is Status.CLOSED and outcome is None)


def branch_files(root: Path, commit: str) -> set[str]:
    """Return the files below ``root`` that are new or differ from a commit.

    Raises:
        UsageError: Git cannot compare them.
    """
    try:
        new = ask(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
        return {*changed_files(root, commit), *filter(None, new)}
    except GitError as error:
        raise UsageError(
            f"git cannot compare the work tree with the base: {error}"
        ) from None


def _is_affected(
    ticket: CheckedTicket, base: Base, head: Register, changed: Collection[str]
) -> bool:
    """Return True if the branch may change what a ticket measures, or closes it; and note how."""
    known = base.documents.get(ticket.id.casefold())
    is_affected = False
    if known and verifier_of(known, base.root):
        ticket.old = known
        ticket.changes = changed_rules(known, ticket.document, base.root, head.root)
        ticket.has_new_rules = (
            stated_in(known).digest != stated_in(ticket.document).digest
        )
        is_affected = (
            bool(ticket.changes)
            or ticket.has_new_rules
            or _uses_any(known, base, head, changed)
        )
    is_now_fixed = counts_as_fixed(ticket.document)
    is_newly_fixed = is_now_fixed and not (known and counts_as_fixed(known))
    ticket.must_hold = is_newly_fixed or (
        ticket.is_accepted and is_affected and is_now_fixed
    )
    return is_affected or is_newly_fixed


def _uses_any(
    document: Document, base: Base, head: Register, changed: Collection[str]
) -> bool:
    """Return True unless a ticket uses nothing that the branch changes, as the base's evidence shows."""
    if base.register is None or all(file.endswith(PROSE) for file in changed):
        return False
    here, there = DiskFiles(head.root), DiskFiles(base.root)
    for recorded in Verdicts(base.root, base.register.config.evidence).recorded(
        document.id.value, None
    ):
        is_same = not recorded.evidence.problem
        for kind, name, value in recorded.evidence.inputs:
            # A file that git ignores is not at the base, and may be here as it was measured.
            if kind == "file" and here.digest(name) != (there.digest(name) or value):
                is_same = False
        if is_same:
            return False
    return True


def _measure(
    tickets: Sequence[CheckedTicket],
    base: Base,
    isolation: Isolation,
    settings: Settings,
) -> None:
    """Measure tickets in the work tree by the rules of the base, and at the base what does not hold."""
    after = _verify([_rules(ticket, base, settings) for ticket in tickets], isolation)
    at_base = []
    for ticket in tickets:
        ticket.now = after[ticket.id]
        done = ticket.now.verification
        is_sound = done is None or (done.is_settled and not count_hazards(done, FIX))
        if ticket.old and not ticket.must_hold and not is_sound:
            own = replace(settings, further=ticket.further, outcomes=False)
            at_base.append(
                (ticket.old, replace(own, root=base.root, repository=settings.root))
            )
    before = _verify(at_base, isolation)
    for ticket in tickets:
        if ticket.id in before:
            ticket.before = before[ticket.id].verification


def _rules(
    ticket: CheckedTicket, base: Base, settings: Settings
) -> tuple[Document, Settings]:
    """Return the document to measure a ticket by, and how.

    Everything comes from the base, except the fix or the code that is meant to stay. A ticket that is new
    or accepted comes from the branch.
    """
    document = ticket.document
    settings = replace(settings, further=ticket.further, outcomes=ticket.must_hold)
    if ticket.old is None or ticket.is_accepted:
        return document, settings
    if ticket.changes:
        document = document.model_copy(update={"remediation": ticket.old.remediation})
    overrides = {EVERY: base.revision.commit}
    remediation = stated_in(document)
    if remediation.place and FIX in remediation.variants:
        there = remediation.variants[FIX].model_copy(
            update={"revision": base.revision.commit}
        )
        variants = {**remediation.variants, BASE: there}
        remediation = remediation.model_copy(update={"variants": variants})
        document = document.model_copy(update={"remediation": remediation})
    subject = FOUND if remediation.decision == "keep" else FIX
    stated = remediation.variants.get(subject)
    if not (stated and stated.revision):
        overrides[subject] = ""
    return document, replace(settings, verifiers=base.root, overrides=overrides)


def _verify(
    jobs: Sequence[tuple[Document, Settings]], isolation: Isolation
) -> dict[str, Verified]:
    """Verify documents, each with settings of its own, and return the outcomes by ID."""
    planned: Planned = {}
    found: list[Verified] = []
    for document, settings in jobs:
        found += plan_each([document], settings, planned)
    if planned:
        # They differ in what is planned; root, meter and limits are the same.
        found += measure(planned, isolation, jobs[0][1])
    return {done.document.id.value: done for done in found}


def _judge(ticket: CheckedTicket, base: Base, head: Register) -> None:
    """Add the problems of a ticket that was measured."""
    now, error, hint = ticket.now.verification, ticket.now.error, _accept(ticket.id)
    fix = find_fix(ticket.document, head.root)
    if ticket.changes and not ticket.is_accepted:
        ticket.add(
            CHANGED,
            f"the branch changes what it is measured by: {'; '.join(ticket.changes)}",
            hint,
        )
    if error:
        is_gone = ticket.old and find_fix(ticket.old, base.root) and not fix
        ticket.add(
            WORSE,
            "its fix is gone" if is_gone else f"cannot be measured: {error.message}",
            at=error,
        )
    if now is None:
        return
    if ticket.now.never_ran:
        ticket.add(UNMEASURED, now.reason)
        return
    compared = ticket.compared
    for each in compared.statements:
        moved = f"if it waits in the place of others: tickets fix {ticket.id} --moved {each.place}"
        then = (
            f"{moved}, and --accept {ticket.id}"
            if each.is_new and each.what == "syncs"
            else None
        )
        _add_worse(
            ticket, each.text.replace(" still ", " again "), each, head.root, then
        )
    if compared.worse:
        _add_worse(ticket, "; ".join(compared.worse), compared.site or fix, head.root)
    is_worse = compared.worse or compared.statements
    if not is_worse and ticket.must_hold and now.verdict in UNPROVEN:
        ticket.add(CLOSED, f"closed as fixed, and {now.verdict}: {now.reason}", hint)
    for note in compared.better:
        ticket.add(WORSE, note, level=Level.NOTE)


def _add_worse(
    ticket: CheckedTicket,
    reason: str,
    at: Contradiction | SiteLaw | Statement | None,
    root: Path,
    hint: str | None = None,
) -> None:
    """Add a regression with the code behind it, unless that is named."""
    code = find_statement(root, at.file, at.line, "").code if at and at.file else ""
    ticket.add(WORSE, reason if code in reason else f"{reason}: {code}", hint, at)


def _problem(
    rule: str,
    file: str,
    line: int,
    message: str,
    hint: str | None,
    level: Level = Level.ERROR,
) -> Problem:
    return Problem(
        level=level, rule=rule, file=file, line=line, message=message, hint=hint
    )


def _accept(name: str) -> str:
    return f"if that is meant: --accept {name}"


def _new_failures(
    claim: ClaimResult, other: ClaimResult | None, now: Verification
) -> list[str]:
    """Return the points at which a claim fails, with the values, but for those that say nothing.

    These are points at which it failed before. Of the points that no file states they are also those for
    which the code as found is none that the ticket describes, and those at which the cost is no higher. A
    claim that fails as a whole has an empty text.
    """
    if not claim.counterexamples:
        return [] if other and not other.as_expected else [""]
    known = _points(other) if other else set()
    further = {at_text(at) for at in now.further}
    for each in now.claims:
        if each.variant == FOUND and each is not claim and not each.as_expected:
            known |= further & _points(each)
    failures = []
    for text in claim.counterexamples:
        point = _point(text)
        if point not in known and not (point in further and text in claim.below):
            failures.append(text)
    return failures


def _points(claim: ClaimResult) -> set[str]:
    return {_point(text) for text in claim.counterexamples}


def _point(counterexample: str) -> str:
    return counterexample.partition(": ")[0]


def _costly_site(
    before: Verification | None, now: Verification, claim: ClaimResult
) -> SiteLaw | None:
    """Return the line behind a metric that costs more than at the base, first one whose cost grows."""
    kinds = SITES.get(claim.metric, (claim.metric.removesuffix("_bytes"),))
    old = before.variants.get(claim.variant) if before else None
    known = {
        (site.function, site.code, site.law) for site in (old.sites if old else ())
    }

    def weight(site: SiteLaw) -> tuple[bool, bool]:
        return (site.function, site.code, site.law) not in known, not (
            site.law or ""
        ).isdecimal()

    found = [site for site in now.variants[claim.variant].sites if site.what in kinds]
    return max(found, key=weight, default=None)


def _names_of_tool(file: Path) -> dict[str, int]:
    """Return the strings in a file that name what measures, each with its line."""
    found = {}
    for node in ast.walk(parse_file(file) or ast.Module([], [])):
        if (
            isinstance(node, ast.Constant)
            and str(node.value).partition(".")[0] in MEASURING_CODE
        ):
            found[str(node.value)] = node.lineno
    return found
