"""Measure the tickets of a branch by the verifiers and claims of its base, and compare."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from finding_tickets.claims.check import ONCE, at_text
from finding_tickets.claims.language import evaluate, parse_condition
from finding_tickets.claims.metrics import SYNCS
from finding_tickets.documents.reading import Document
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.gate.branch import Base, changed_rules, find_fix
from finding_tickets.ground.git import GitError, ask, changed_files
from finding_tickets.ground.statements import Statement, find_statement, parse_file
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.measure.tasks import Further
from finding_tickets.model.ticket import Problem
from finding_tickets.model.verification import ClaimResult, SiteLaw, Verification
from finding_tickets.model.vocabulary import (
    ELSEWHERE,
    REMEDIATION_RULES,
    SAME_RESULT,
    Level,
    Outcome,
    Status,
    Verdict,
)
from finding_tickets.register.disposition import is_fixed, status_of
from finding_tickets.register.entries import outcome_of
from finding_tickets.register.files import DiskFiles
from finding_tickets.register.load import Register
from finding_tickets.register.staleness import Verdicts
from finding_tickets.verify.judge import FIX, FOUND, count_hazards, raced_text
from finding_tickets.verify.places import A_NEW_WAIT
from finding_tickets.verify.plan import EVERY, verifier_of
from finding_tickets.verify.verify import Planned, Settings, Verified, measure, plan_each

WORSE, CHANGED, CLOSED, GONE = "gate-worse", "gate-changed", "gate-closed", "gate-gone"
AWARE, UNREAD, UNMEASURED, STALE = "gate-aware", "gate-unread", "gate-unmeasured", "gate-stale"
CODES = {
    UNREAD: ExitCode.BAD_DATA,
    UNMEASURED: ExitCode.INCONCLUSIVE,
    "budget-unmeasured": ExitCode.INCONCLUSIVE,
}
# The names of sites behind a metric, where these are others.
SITES = {"syncs": SYNCS, ELSEWHERE: (*SYNCS, "hazards"), "peak_bytes": ("allocations",)}
OF_TESTS = re.compile(r"(?:.*/)?(?:tests?/.*|test_[^/]*\.py|[^/]*_test\.py|conftest\.py)")
UNPROVEN = {Verdict.UNVERIFIED, Verdict.REPRODUCED, Verdict.INCONCLUSIVE}
PROSE = (".md", ".rst")
MEASURING_CODE = {"simcuda", "finding_tickets"}


@dataclass
class Comparison:
    """The regressions since the base, the line that costs the first one, and the improvements."""

    worse: list[str] = field(default_factory=list)
    site: SiteLaw | None = None
    better: list[str] = field(default_factory=list)


@dataclass
class CheckedTicket:
    """A ticket that the branch affects, measured at the base and now; with the problems."""

    document: Document
    old: Document | None  # at the base, if it could be measured there
    before: Verification | None = None
    now: Verified | None = None
    changes: Sequence[str] = ()  # in what it is measured by
    has_new_rules: bool = False  # whether its Remediation is another one
    is_accepted: bool = False  # by the command line
    must_hold: bool = False  # closed as fixed by the branch, or by the rules of the branch
    problems: list[Problem] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Return the ID of the ticket."""
        return self.document.id.value

    def add(
        self, rule: str, message: str, hint: str = "", place: tuple[str, int] = ("", 0), *, note: bool = False
    ) -> None:
        """Add a problem, at a place in the code or at the ticket."""
        remediation = self.document.remediation
        own = (remediation.path, remediation.span.line) if remediation else (self.document.path, 1)
        problem = _problem(rule, *(place if place[0] else own), f"{self.id}: {message}", hint or None)
        if note:
            problem = problem.model_copy(update={"level": Level.NOTE})
        self.problems.append(problem)


def decide(before: Verification | None, now: Verification) -> Comparison:
    """Compare a ticket as it is measured now with the same ticket at the base, if it was there.

    Every claim must hold now wherever it held before, unless the metric has improved at every point. A claim
    that is new must hold.
    """
    compared = Comparison()
    if now.verdict is Verdict.INCONCLUSIVE and (before is None or before.verdict is not now.verdict):
        compared.worse.append(now.reason)
        return compared
    compared.site = _new_hazard(before, now)
    if compared.site:
        raced = raced_text(now.variants[FIX].sites)
        compared.worse.append(f"accesses the same data from two streams without an order between them{raced}")
    known = {claim.id: claim for claim in before.claims} if before else {}
    for claim in now.claims:
        failures = [] if claim.as_expected else _new_failures(claim, known.get(claim.id), now)
        if not failures:
            continue
        # What has no sweep has no point to name.
        example = f" ({failures[0]})" if failures[0] and now.sweep != (ONCE,) else ""
        if before and claim.id in known and _has_improved(before, now, claim):
            compared.better.append(f"{claim.id} is better than claimed, {claim.claimed}{example}")
        else:
            reason = f"{claim.id} is claimed to be {claim.claimed}, and is {claim.measured}{example}"
            if claim.said:
                reason = "; ".join(failures).replace(" still ", " again ")
            compared.worse.append(reason)
            compared.site = compared.site or _costly_site(before, now, claim)
    return compared


def check_tickets(
    base: Base, head: Register, accepted: Collection[str], isolation: Isolation, settings: Settings
) -> list[CheckedTicket]:
    """Measure every ticket that the branch affects, at the base and in the work tree.

    ``accepted`` are the IDs, in lower case, whose changes the command line accepts.
    """
    changed = branch_files(head.root, base.revision.commit)
    tickets = []
    for document in head.documents:
        known = base.document(document.id.value)
        old = known if known and verifier_of(known, base.root) else None
        ticket = CheckedTicket(document, old, is_accepted=document.id.value.casefold() in accepted)
        is_affected = False
        if old:
            ticket.changes = changed_rules(old, document, base.root, head.root)
            ticket.has_new_rules = _digest(old) != _digest(document)
            is_affected = ticket.has_new_rules or bool(ticket.changes)
            is_affected = is_affected or _is_affected(old, base, head, changed)
        is_now_fixed = counts_as_fixed(document)
        is_newly_fixed = is_now_fixed and not (known and counts_as_fixed(known))
        ticket.must_hold = is_newly_fixed or (ticket.is_accepted and is_affected and is_now_fixed)
        if is_affected or is_newly_fixed:
            tickets.append(ticket)
    moved = list(settings.excused)
    for ticket in tickets:
        # Those of its fix are judged with it.
        remediation = ticket.document.remediation
        if remediation and (ticket.is_accepted or not ticket.changes):
            moved += [Statement(each.file, 0, each.function, each.code) for each in remediation.moved]
    _measure(tickets, base, isolation, replace(settings, excused=tuple(moved)))
    for ticket in tickets:
        _judge(ticket, base, head)
    _leave_out_repeated(tickets)
    return tickets


def _leave_out_repeated(tickets: Sequence[CheckedTicket]) -> None:
    """Say of each line once that it costs more: a place that waits again is a new wait to other tickets."""
    told = set[tuple[str, int]]()
    for ticket in sorted(tickets, key=_has_new_waits):
        for problem in list(ticket.problems):
            place = problem.file, problem.line
            if A_NEW_WAIT in problem.message and place in told:
                ticket.problems.remove(problem)
            told.add(place)


def _has_new_waits(ticket: CheckedTicket) -> bool:
    return any(A_NEW_WAIT in problem.message for problem in ticket.problems)


def find_gone(base: Base, head: Register, accepted: Collection[str]) -> Iterator[Problem]:
    """Yield the tickets of the base that could be measured there, and are not in the branch."""
    ids = {document.id.value.casefold() for document in head.documents} | set(accepted)
    for document in base.register.documents if base.register else ():
        if document.id.value.casefold() not in ids and verifier_of(document, base.root):
            name = document.id.value
            yield _problem(GONE, document.path, 1, f"{name}: the ticket is gone", _accept(name))


def find_unread(base: Base, head: Register) -> Iterator[Problem]:
    """Yield what cannot be read in the work tree, and could be read at the base."""
    known = {(each.file, each.message) for each in (base.register.problems if base.register else ())}
    for problem in head.problems:
        is_own = problem.level is Level.ERROR and not problem.rule.startswith(REMEDIATION_RULES)
        if is_own and (problem.file, problem.message) not in known:
            yield _problem(UNREAD, problem.file, problem.line, problem.message, problem.hint)


def find_aware_code(base: Base, root: Path) -> Iterator[Problem]:
    """Yield where code of the branch asks whether it is measured: it names what measures in a string."""
    for file in sorted(branch_files(root, base.revision.commit)):
        if not file.endswith(".py") or OF_TESTS.fullmatch(file):
            continue
        known = _names_of_tool(base.root / file)
        for name, line in _names_of_tool(root / file).items():
            if name not in known:
                message = f"the code asks whether it is measured: {name!r}"
                yield _problem(AWARE, file, line, message, "do the same work everywhere")


def exit_code(problems: Iterable[Problem]) -> ExitCode:
    """Return the exit code for the problems of a branch."""
    rules = [problem.rule for problem in problems if problem.level is Level.ERROR]
    return ExitCode.worst(*(CODES.get(rule, ExitCode.GATE_FAILED) for rule in rules))


def counts_as_fixed(document: Document) -> bool:
    """Return True if people say of a ticket that it was fixed, or closed it without saying how."""
    status, outcome = status_of(document), outcome_of(document)
    if status is None:
        return outcome is Outcome.FIXED
    return is_fixed(status, outcome) or (status is Status.CLOSED and outcome is None)


def branch_files(root: Path, commit: str) -> set[str]:
    """Return the files below ``root`` that differ from those of a commit, or are new.

    Raises:
        UsageError: Git cannot compare them.
    """
    try:
        new = ask(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
        return {*changed_files(root, commit), *filter(None, new)}
    except GitError as error:
        raise UsageError(f"git cannot compare the work tree with the base: {error}") from None


def _digest(document: Document) -> str:
    return document.remediation.digest if document.remediation else ""


def _is_affected(document: Document, base: Base, head: Register, changed: Collection[str]) -> bool:
    """Return True unless a ticket uses nothing that the branch changes, as the base's evidence shows."""
    if all(file.endswith(PROSE) for file in changed):
        return False
    folder = base.register.config.evidence if base.register else ""
    here, there = DiskFiles(head.root), DiskFiles(base.root)
    for recorded in Verdicts(base.root, folder).recorded(document.id.value, None):
        files = [(name, value) for kind, name, value in recorded.evidence.inputs if kind == "file"]
        # A file that git ignores is not at the base, and may be here as it was measured.
        same = [here.digest(name) in {value, there.digest(name)} for name, value in files]
        if all(same) and not recorded.evidence.problem:
            return False
    return True


def _measure(tickets: Sequence[CheckedTicket], base: Base, isolation: Isolation, settings: Settings) -> None:
    """Measure tickets at the base, and in the work tree by the rules of the base."""
    own, now, at_base = {}, [], []
    for ticket in tickets:
        # There is no fix to compare a new one with, and it may not be made for the edges.
        is_new = ticket.must_hold or ticket.has_new_rules
        further: Further = "sizes" if is_new else "edges"
        own[ticket.id] = replace(settings, further=further, outcomes=ticket.must_hold)
        now.append(_rules(ticket, base, own[ticket.id]))
    after = _verify(now, isolation)
    for ticket in tickets:
        ticket.now = after[ticket.id]
        done = ticket.now.verification
        is_sound = done is None or (done.is_settled and not count_hazards(done, FIX))
        if ticket.old and not ticket.must_hold and not is_sound:
            at_base.append((ticket.old, replace(own[ticket.id], root=base.root, repository=settings.root)))
    before = _verify(at_base, isolation)
    for ticket in tickets:
        if ticket.id in before:
            ticket.before = before[ticket.id].verification


def _rules(ticket: CheckedTicket, base: Base, settings: Settings) -> tuple[Document, Settings]:
    """Return the document to measure a ticket by, and how.

    Everything but the fix, or the code that is meant to stay, is that of the base. A ticket that is new or
    accepted is all its own.
    """
    document = ticket.document
    if ticket.old is None or ticket.is_accepted:
        return document, settings
    if ticket.changes:
        document = document.model_copy(update={"remediation": ticket.old.remediation})
    overrides = {EVERY: base.revision.commit}
    remediation = document.remediation
    subject = FOUND if remediation and remediation.decision == "keep" else FIX
    stated = remediation.variants.get(subject) if remediation else None
    if not (stated and stated.revision):
        overrides[subject] = ""
    return document, replace(settings, verifiers=base.root, overrides=overrides)


def _verify(jobs: Sequence[tuple[Document, Settings]], isolation: Isolation) -> dict[str, Verified]:
    """Verify documents, each with settings of its own, and return the outcomes by ID."""
    planned: Planned = {}
    found: list[Verified] = []
    for document, settings in jobs:
        found += plan_each([document], settings, planned)
    if planned:
        # They differ in what is planned; root, meter and limits are the same.
        found += [done for _, done in measure(planned, isolation, jobs[0][1])]
    return {done.document.id.value: done for done in found}


def _judge(ticket: CheckedTicket, base: Base, head: Register) -> None:
    """Add the problems of a ticket that was measured."""
    done, hint = ticket.now, _accept(ticket.id)
    if ticket.changes and not ticket.is_accepted:
        ticket.add(CHANGED, f"the branch changes what it is measured by: {'; '.join(ticket.changes)}", hint)
    if done and done.error:
        place = (done.error.file or "", done.error.line or 1)
        is_gone = ticket.old and find_fix(ticket.old, base.root) and not find_fix(ticket.document, head.root)
        reason = "its fix is gone" if is_gone else f"cannot be measured: {done.error.message}"
        ticket.add(WORSE, reason, "", place)
    verification = done.verification if done else None
    if done is None or verification is None:
        return
    if done.never_ran:
        ticket.add(UNMEASURED, verification.reason)
        return
    is_compared = ticket.must_hold or ticket.before
    compared = decide(ticket.before, verification) if is_compared else Comparison()
    if compared.worse:
        site = compared.site
        culprit = site or find_fix(ticket.document, head.root)
        place = (culprit.file, culprit.line) if culprit else ("", 0)
        reason = "; ".join(compared.worse)
        code = find_statement(head.root, site.file, site.line, "").code if site else ""
        ticket.add(WORSE, reason if code in reason else f"{reason}: {code}", "", place)
    elif ticket.must_hold and verification.verdict in UNPROVEN:
        ticket.add(CLOSED, f"closed as fixed, and {verification.verdict}: {verification.reason}", hint)
    for note in compared.better:
        ticket.add(WORSE, note, note=True)
    if head.measured(ticket.document).verdict is Verdict.STALE:
        ticket.add(STALE, "its evidence is out of date", "tickets verify --stale", note=True)


def _problem(rule: str, file: str, line: int, message: str, hint: str | None) -> Problem:
    return Problem(level=Level.ERROR, rule=rule, file=file, line=line, message=message, hint=hint)


def _accept(name: str) -> str:
    return f"if that is meant: --accept {name}"


def _new_failures(claim: ClaimResult, other: ClaimResult | None, now: Verification) -> list[str]:
    """Return the points at which a claim fails, with the values, but for those that say nothing.

    These are points at which it failed before. Of the points that no file states they are also those for
    which the code as found is none that the ticket describes, and those at which the cost is no higher. A
    claim that fails as a whole has an empty text.
    """
    if claim.said:
        # What stands behind the line and the number is the code.
        known = {text.partition(": ")[2] for text in other.said} if other else set()
        return [text for text in claim.said if text.partition(": ")[2] not in known]
    if not claim.counterexamples:
        return [] if other and not other.as_expected else [""]
    known = {_point(text) for text in other.counterexamples} if other else set()
    further = {at_text(at): at for at in now.further}
    for each in now.claims:
        if each.variant == FOUND and each is not claim and not each.as_expected:
            known |= {_point(text) for text in each.counterexamples} & further.keys()
    examples = []
    for text in claim.counterexamples:
        point = _point(text)
        if point not in known and (point not in further or _is_above(claim, further[point], text)):
            examples.append(text)
    return examples


def _point(counterexample: str) -> str:
    return counterexample.partition(": ")[0]


def _new_hazard(before: Verification | None, now: Verification) -> SiteLaw | None:
    """Return the line of a hazard of the fix, if neither the base nor the code as found has as many."""
    known = count_hazards(before, FIX) if before else count_hazards(now, FOUND)
    if count_hazards(now, FIX) <= known:
        return None
    return next((site for site in now.variants[FIX].sites if site.what == "hazards"), None)


def _is_above(claim: ClaimResult, at: Mapping[str, int], counterexample: str) -> bool:
    """Return True if the measured value at a point exceeds the claim, or is not a number."""
    value = counterexample.partition(": ")[2]
    if not value.isdecimal():
        return True
    condition = parse_condition(claim.claimed.partition(" where ")[0])
    return int(value) > max(evaluate(side, at) for side in condition.sides)


def _has_improved(before: Verification, now: Verification, claim: ClaimResult) -> bool:
    """Return True if the metric of a claim is nowhere larger than before."""
    if claim.metric == SAME_RESULT or claim.variant not in before.variants:
        return False
    old = {at_text(each.at): each for each in before.variants[claim.variant].samples}
    for sample in now.variants[claim.variant].samples:
        value = sample.metrics.get(claim.metric)
        other = old[at_text(sample.at)].metrics.get(claim.metric)
        if sample.error or value is None or other is None or value > other:
            return False
    return True


def _costly_site(before: Verification | None, now: Verification, claim: ClaimResult) -> SiteLaw | None:
    """Return the line behind a metric that costs more than at the base, first one whose cost grows."""
    kinds = SITES.get(claim.metric, (claim.metric.removesuffix("_bytes"),))
    old = before.variants.get(claim.variant) if before else None
    known = {(site.function, site.code, site.law) for site in (old.sites if old else ())}
    found = [site for site in now.variants[claim.variant].sites if site.what in kinds]
    new = [site for site in found if (site.function, site.code, site.law) not in known]
    return max(new or found, key=lambda site: not (site.law or "").isdecimal(), default=None)


def _names_of_tool(file: Path) -> dict[str, int]:
    """Return the strings in a file that name what measures, each with its line."""
    found = {}
    for node in ast.walk(parse_file(file) or ast.Module([], [])):
        if isinstance(node, ast.Constant) and str(node.value).partition(".")[0] in MEASURING_CODE:
            found[str(node.value)] = node.lineno
    return found
