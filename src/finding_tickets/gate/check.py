"""Judge a branch: what was measured again, against what the base has and what the branch says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, ExitCode
from finding_tickets.gate.branch import Base, BranchTicket
from finding_tickets.gate.changes import Side
from finding_tickets.measure.isolation import Isolation
from finding_tickets.model.problem import REMEDIATION_RULES, Level, Problem
from finding_tickets.model.verification import ClaimResult, Verification
from finding_tickets.model.vocabulary import BEST_FIRST, Outcome, Status, Verdict
from finding_tickets.register.disposition import status_of
from finding_tickets.register.index import outcome_of
from finding_tickets.register.load import Register
from finding_tickets.register.staleness import ABSENT, rank
from finding_tickets.verify.evidence import digest, dump, name_of
from finding_tickets.verify.verify import Settings, Verified, verify

GUARDED = ("tickets", "evidence", "meter", "largest_file")
# Settings that decide which tickets there are and which are closed, what counts, and where evidence is.
GUARDED_WORDS = ("id_pattern", "statuses", "outcomes")

# Modules that Python runs before any other, where it finds them.
STARTUP = ("sitecustomize", "usercustomize")

AGAIN = "tickets verify {id}, and commit the evidence"
NAME_IT = "name what is meant with a line **Accepted change:** in the ticket, or --accept {id}"
ACCEPT = "where that is meant: --accept {id}"

# What a branch must not do, by name, and what to do where it does; docs/ci.md explains each.
RULES = {
    "gate-unmeasured": AGAIN,
    "gate-worse": ACCEPT,
    "gate-claim": ACCEPT,
    "gate-stale": AGAIN,
    "gate-evidence": AGAIN,
    "gate-unchecked": ACCEPT,
    "gate-inconclusive": ACCEPT,
    "gate-closed": ACCEPT,
    "gate-changed": NAME_IT,
    "gate-gone": ACCEPT,
}

# The rules that ``--accept`` turns into warnings; measuring again mends the others.
ACCEPTABLE = frozenset(rule for rule, hint in RULES.items() if hint is not AGAIN)

# The exit code of a rule that is not ``GATE_FAILED``.
CODES: Mapping[str, ExitCode] = {
    "gate-unmeasured": ExitCode.BAD_DATA,
    "gate-unread": ExitCode.BAD_DATA,
    "gate-unchecked": ExitCode.INCONCLUSIVE,
    "gate-inconclusive": ExitCode.INCONCLUSIVE,
}

# A rule, and what is to be said.
Said = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Judged:
    """A ticket of the branch with what the gate has to say about it."""

    pair: BranchTicket
    # What came of measuring it as the branch has it, and by the base's verifier and claims where these count;
    # None where there was no need, or no way.
    own: Verified | None = None
    held: Verified | None = None
    is_accepted: bool = False  # by the command line

    @property
    def measured(self) -> Verification | None:
        """The verification with the worse verdict; None where it was not measured."""
        done = [each.verification for each in (self.own, self.held) if each and each.verification]
        return max(done, key=lambda each: BEST_FIRST.index(each.verdict), default=None)

    @property
    def before(self) -> Verification | None:
        """What the base has measured, in the same environment where it has been there."""
        return _most_alike(self.pair.base, self.own.verification if self.own else None)

    @property
    def base(self) -> Verdict | None:
        """The verdict that the evidence of the base states, fresh or not."""
        return self.before.verdict if self.before else None

    @property
    def recorded(self) -> Verdict | None:
        """The verdict that the evidence of the branch states, fresh or not."""
        after = _most_alike(self.pair.head, None)
        return after.verdict if after else None

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """What the gate has to say, in the order of its rules."""
        document = self.pair.document
        remediation = document.remediation
        file, line = (remediation.path, remediation.span.line) if remediation else (document.path, 1)
        made = []
        for rule, message in (*_of_measurement(self), *_of_evidence(self), *_of_document(self)):
            accepted = self.is_accepted and rule in ACCEPTABLE
            hint = RULES[rule].format(id=self.pair.id)
            made.append(_problem(rule, file, line, f"{self.pair.id}: {message}", hint, accepted=accepted))
        return tuple(made)


def _problem(rule: str, file: str, line: int, message: str, hint: str, *, accepted: bool) -> Problem:
    level = Level.WARNING if accepted else Level.ERROR
    hint = "accepted by the command line" if accepted else hint
    return Problem(level=level, rule=rule, file=file, line=line, message=message, hint=hint)


def judge(
    tickets: Iterable[BranchTicket],
    named: Iterable[str],
    head: Register,
    isolation: Isolation,
    settings: Settings,
    tell: Callable[[str], None],
) -> tuple[Judged, ...]:
    """Measure again every ticket that the branch changes, or whose evidence is stale; no file is written.

    ``named`` are the IDs whose changes the command line accepts. ``tell`` is told of each measurement as soon
    as it is done. ``settings`` are those for the work tree.
    """
    changed = [pair for pair in tickets if pair.why]
    settings = replace(settings, record=False)
    own: dict[str, Verified] = {}
    held: dict[str, Verified] = {}
    as_branch, as_base, verifiers = [], [], None
    for pair in changed:
        document = pair.document
        if pair.head and (error := broken(document, head)):
            own[document.path] = Verified(document, error=error)
        elif pair.head:
            as_branch.append(document)
            if pair.base and any(change.is_open for change in pair.changes):
                # Changes that nobody has named do not count: the base's claims and verifier measure the work
                # tree's code, too. All are at the same base.
                remediation, verifiers = pair.base.document.remediation, pair.base.root
                as_base.append(document.model_copy(update={"remediation": remediation}))
    runs = [(own, verify(as_branch, isolation, settings), "")]
    settings = replace(settings, verifiers=verifiers)
    runs.append((held, verify(as_base, isolation, settings), " by the base's verifier and claims"))
    for done, run, how in runs:
        for verified in run:
            done[verified.document.path] = verified
            verdict = verified.verification.verdict if verified.verification else None
            tell(f"{verified.document.id.value}{how}: {verdict or f'not measured: {verified.error}'}")
    by_command = {name.casefold() for name in named}
    judged = []
    for pair in changed:
        # A ticket that is gone may have stood in the file of another one.
        path = pair.document.path if pair.head else ""
        judged.append(Judged(pair, own.get(path), held.get(path), pair.id.casefold() in by_command))
    return tuple(judged)


def configuration(base: Base, head: Register, *, accepted: bool) -> Iterator[Problem]:
    """What of a branch could make tickets, their state, their evidence or the measuring another one."""
    found: dict[str, str] = {}
    if base.register:
        old, new = base.register.config, head.config
        names = [name for name in GUARDED if getattr(old, name) != getattr(new, name)]
        was, now = old.vocabulary, new.vocabulary
        names += [name for name in GUARDED_WORDS if getattr(was, name) != getattr(now, name)]
        if names:
            found["tickets.toml"] = f"the configuration is another one than the base's: {', '.join(names)}"
    for name in (f"{folder}{module}" for folder in ("", "src/") for module in STARTUP):
        for file in (f"{name}.py", f"{name}/__init__.py"):
            if digest(head.root / file) not in {ABSENT, digest(base.root / file)}:
                why = "and Python runs it before anything is measured"
                found[file] = f"{file} is another one than the base's, {why}"
    hint = ACCEPT.format(id="configuration")
    for file, message in found.items():
        yield _problem("gate-configuration", file, 1, message, hint, accepted=accepted)


def unread(base: Register | None, head: Register) -> Iterator[Problem]:
    """The files that cannot be read in the work tree, and were not as broken at the base."""
    already = {(each.file, each.rule, each.message) for each in (base.problems if base else ())}
    for problem in head.problems:
        known = (problem.file, problem.rule, problem.message) in already
        if problem.level is Level.ERROR and not known and not problem.rule.startswith(REMEDIATION_RULES):
            message = f"[{problem.rule}] {problem.message}"
            yield problem.model_copy(update={"rule": "gate-unread", "message": message})


def exit_code(problems: Iterable[Problem]) -> ExitCode:
    """What the problems of a branch end in."""
    errors = [problem for problem in problems if problem.level is Level.ERROR]
    return ExitCode.worst(*(CODES.get(problem.rule, ExitCode.GATE_FAILED) for problem in errors))


def broken(document: Document, head: Register) -> BadDataError | None:
    """What is wrong with a Remediation that was not understood."""
    for problem in head.problems_of(document):
        if problem.level is Level.ERROR and problem.rule.startswith(REMEDIATION_RULES):
            return problem.as_error
    return None


def is_fixed(document: Document) -> bool:
    """Whether people say of a ticket that it was resolved by a fix, or closed it without a word on how."""
    status, outcome = status_of(document), outcome_of(document)
    if status is Status.CLOSED:
        return outcome in {Outcome.FIXED, None}
    return status is Status.FIXED or (status is None and outcome is Outcome.FIXED)


def _most_alike(side: Side | None, like: Verification | None) -> Verification | None:
    """The recorded verification of the same environment, else the one that counts most."""
    found = [evidence.verification for evidence in side.evidence] if side else []
    same = [one for one in found if like and name_of(one) == name_of(like)]
    return next(iter([*same, *sorted(found, key=rank)]), None)


def _statement(claim: ClaimResult) -> str:
    return f"{claim.variant}.{claim.metric} {claim.claimed}"


def _of_measurement(judged: Judged) -> Said:
    """What measuring a ticket again says against the branch."""
    done, before, head = judged.measured, judged.before, judged.pair.head
    runs = [each for each in (judged.own, judged.held) if each]
    for verified in runs:
        if verified.error:
            by = " by the base's verifier and claims" if verified is judged.held else ""
            yield "gate-unmeasured", f"cannot be measured{by}: {verified.error}"
    # A verdict that is worse than the base's, measured or by evidence that is gone.
    if before and head:
        if done and BEST_FIRST.index(done.verdict) > BEST_FIRST.index(before.verdict):
            yield "gate-worse", f"{done.verdict}, and {before.verdict} at the base: {done.reason}"
        elif not head.files:
            yield (
                "gate-worse",
                f"its evidence is gone, which was {before.verdict} at the base: verify it again",
            )
    # Claims with another outcome than expected, which the base did not have already.
    already = {_statement(each) for each in before.claims if each.is_surprise} if before else set()
    claims = (claim for each in runs if each.verification for claim in each.verification.claims)
    surprises = {_statement(claim): claim for claim in claims if claim.is_surprise}
    for statement, claim in surprises.items():
        if statement not in already:
            outcome = "holds" if claim.holds else "is false"
            message = f"{statement} {outcome}, which is not expected of it: measured {claim.measured}"
            yield "gate-claim", message


def _of_evidence(judged: Judged) -> Said:
    """What the evidence that the branch brings along says against it."""
    head, own = judged.pair.head, judged.own
    if head is None:
        return
    before = judged.pair.base.files if judged.pair.base else {}
    is_stale = head.current.verdict is Verdict.STALE
    if is_stale:
        changed = ", ".join(head.current.changed)
        yield "gate-stale", f"its evidence is stale; changed since it was measured: {changed}"
    if head.problem:
        yield "gate-evidence", f"{head.problem.file} {head.problem.message}"
    done = own.verification if own else None
    elsewhere = []
    for file, content in head.files.items():
        if done is None or not file.endswith(f"/{name_of(done)}"):
            elsewhere.append(file)
        elif own and not head.problem and not is_stale:
            # A measurement that did not come about is no evidence: then what the base has stays as it is.
            expected = dump(own.evidence) if own.evidence else before.get(file)
            if content != expected:
                yield "gate-evidence", f"{file} is not what was measured now, which is {done.verdict}"
    for file in elsewhere:
        if head.files[file] != before.get(file):
            yield "gate-unchecked", f"{file} is of another environment, and cannot be checked here"


def _of_document(judged: Judged) -> Said:
    """What the ticket itself says against the branch."""
    base, head, done = judged.pair.base, judged.pair.head, judged.measured
    if done and done.verdict is Verdict.INCONCLUSIVE and judged.before is None:
        yield "gate-inconclusive", f"{done.verdict}: {done.reason}"
    if head and is_fixed(head.document) and not (base and is_fixed(base.document)):
        document = head.document
        verdict = done.verdict if done else Verdict.UNVERIFIED
        says_fixed = outcome_of(document) is Outcome.FIXED or status_of(document) is Status.FIXED
        if verdict is not Verdict.VERIFIED:
            yield "gate-closed", f"closed as fixed, and its verdict is {verdict}"
        elif says_fixed and document.remediation and document.remediation.decision == "keep":
            yield "gate-closed", "closed as fixed, and what is verified is the decision to keep the code"
    for change in judged.pair.changes:
        if change.is_open:
            yield "gate-changed", f"{change}, which nobody has named"
    if base and base.files and head is None:
        yield "gate-gone", "the ticket is gone, and has evidence at the base"
