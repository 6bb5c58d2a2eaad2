"""Judge a branch: what was measured again, against what the base has and what the branch says of itself."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.gate.branch import Base, BranchTicket, Side
from finding_tickets.ground.git import GitError, changed_files, work_tree
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.ticket import Problem
from finding_tickets.model.verification import ClaimResult, Evidence, Verification
from finding_tickets.model.vocabulary import (
    BEST_FIRST,
    REMEDIATION_RULES,
    Level,
    Outcome,
    Status,
    Verdict,
)
from finding_tickets.register.disposition import status_of
from finding_tickets.register.index import outcome_of
from finding_tickets.register.load import Register
from finding_tickets.register.staleness import rank
from finding_tickets.verify.evidence import dump, name_of
from finding_tickets.verify.verify import (
    Planned,
    Settings,
    Verified,
    measure,
    plan_each,
    seed_of,
    shows_little,
)

GUARDED = ("tickets", "evidence", "meter", "largest_file")
# Settings that decide which tickets there are and which are closed, what counts, and where evidence is.
GUARDED_WORDS = ("id_pattern", "statuses", "outcomes")

# What Python runs before any other code, where it finds them: modules of any kind, and lines of ``.pth``.
STARTUP = re.compile(r"(^|/)((site|user)customize(\.[^/]*)?(/|$)|(site|dist)-packages/[^/]+\.pth$)")
BY_BASE = " by the base's verifier and claims"

AGAIN = "tickets verify {id}, and commit the evidence"
NAME_IT = "name what is meant with a line **Accepted change:** in the ticket, or --accept {id}"
ACCEPT = "where that is meant: --accept {id}"

# What a branch must not do, by name, and what to do where it does; docs/ci.md explains each.
RULES = {
    "gate-unmeasured": AGAIN,
    "gate-worse": ACCEPT,
    "gate-claim": ACCEPT,
    "gate-seed": ACCEPT,
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
    "budget-unmeasured": ExitCode.INCONCLUSIVE,
}

# Inputs that are the same wherever the repository is.
OF_REPOSITORY = frozenset({"file", "commit"})

# A rule, and what is to be said.
Said = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class GateRun:
    """What came of measuring a ticket; with the seed that was drawn for this run once more."""

    first: Verified
    again: Verified | None = None
    by: str = ""  # by the base's verifier and claims, where these count; else as the branch has it


@dataclass(frozen=True)
class Judged:
    """A ticket of the branch with what the gate has to say about it."""

    pair: BranchTicket
    runs: tuple[GateRun, ...] = ()  # none where there was no need, or no way
    is_accepted: bool = False  # by the command line
    seed: int | None = None

    @cached_property
    def own(self) -> Verified | None:
        """What came of measuring it as the branch has it."""
        return next((run.first for run in self.runs if not run.by), None)

    @property
    def measured(self) -> Verification | None:
        """The verification with the worse verdict; None where it was not measured."""
        done = [run.first.verification for run in self.runs if run.first.verification]
        return max(done, key=lambda each: BEST_FIRST.index(each.verdict), default=None)

    @property
    def before(self) -> Verification | None:
        """The best that a base has measured, in the same environment where it has been there."""
        return min(self.all_before, key=lambda each: BEST_FIRST.index(each.verdict), default=None)

    @property
    def all_before(self) -> list[Verification]:
        """What each base has measured, as far as it has."""
        like = self.own.verification if self.own else None
        return [found for side in self.pair.bases if (found := _most_alike(side, like))]

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
        said = (_of_measurement(self), _of_seed(self), _of_evidence(self), _of_document(self))
        for rule, message in chain.from_iterable(said):
            accepted = self.is_accepted and rule in ACCEPTABLE
            hint = RULES[rule].format(id=self.pair.id)
            made.append(_problem(rule, file, line, f"{self.pair.id}: {message}", hint, accepted=accepted))
        for message in _notes_of_seed(self):
            text = f"{self.pair.id}: {message}"
            made.append(Problem(level=Level.NOTE, rule="gate-seed", file=file, line=line, message=text))
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
    as it is done. ``settings`` are those for the work tree; everything is measured again with their seed.
    """
    changed = [pair for pair in tickets if pair.why]
    settings = replace(settings, record=False)
    runs: dict[str, list[GateRun]] = {pair.document.path: [] for pair in changed if pair.head}
    # By where verifiers are taken from, if not from the work tree.
    documents: dict[Path | None, list[Document]] = {}
    for pair in changed:
        document = pair.document
        if pair.head and (error := remediation_error(document, head)):
            runs[document.path].append(GateRun(Verified(document, error=error)))
        elif pair.head:
            documents.setdefault(None, []).append(document)
            for side in pair.held_to:
                # Changes that nobody has named do not count: the base's claims and verifier measure the work
                # tree's code, too.
                update = {"remediation": side.document.remediation}
                documents.setdefault(side.root, []).append(document.model_copy(update=update))
    for verifiers, several in documents.items():
        how, by = (replace(settings, verifiers=verifiers), BY_BASE) if verifiers else (settings, "")
        both: dict[str, dict[bool, Verified]] = {}
        for verified, is_drawn in _verify_twice(several, isolation, how):
            both.setdefault(verified.document.path, {})[is_drawn] = verified
            verdict = verified.verification.verdict if verified.verification else None
            with_seed = f" with seed {settings.seed}" if is_drawn else ""
            said = verdict or f"not measured: {verified.error}"
            tell(f"{verified.document.id.value}{by}{with_seed}: {said}")
        for path, done in both.items():
            runs[path].append(GateRun(done[False], done.get(True), by))
    by_command = {name.casefold() for name in named}
    # A ticket that is gone may have stood in the file of another one.
    return tuple(
        Judged(
            pair,
            tuple(runs[pair.document.path]) if pair.head else (),
            pair.id.casefold() in by_command,
            settings.seed,
        )
        for pair in changed
    )


def _verify_twice(
    documents: Iterable[Document], isolation: Isolation, settings: Settings
) -> Iterator[tuple[Verified, bool]]:
    """Every document with the workload's seed and, where it has a workload, with the drawn one, too."""
    planned: Planned = {}
    yield from ((done, False) for done in plan_each(documents, replace(settings, seed=None), planned))
    for key, (document, todo) in list(planned.items()):
        if settings.seed is not None and not todo.run:
            planned[f"{key}\0"] = document, replace(todo, seed=seed_of(todo.ticket, settings.seed))
    for key, done in measure(planned, isolation, settings) if planned else ():
        yield done, key.endswith("\0")


def guarded_changes(bases: Iterable[Base], head: Register, *, accepted: bool) -> Iterator[Problem]:
    """What of a branch could make tickets, their state, their evidence or the measuring another one."""
    found: dict[str, str] = {}
    for base in bases:
        if base.moved_from:
            found["tickets.toml"] = f"the register was found in {base.moved_from} at the base, and is not now"
        if base.register:
            old, new = base.register.config, head.config
            names = [name for name in GUARDED if getattr(old, name) != getattr(new, name)]
            was, now = old.vocabulary, new.vocabulary
            names += [name for name in GUARDED_WORDS if getattr(was, name) != getattr(now, name)]
            if names:
                why = f"the configuration is another one than the base's: {', '.join(names)}"
                found["tickets.toml"] = why
        top = work_tree(head.root) or head.root
        try:
            files = sorted(changed_files(top, base.revision.commit))
        except GitError as error:
            raise UsageError(f"git cannot compare the work tree with the base: {error}") from None
        for file in files:
            if STARTUP.search(file) and os.path.lexists(top / file):
                why = "and Python may run it before anything is measured"
                found[file] = f"{file} is another one than the base's, {why}"
    hint = ACCEPT.format(id="configuration")
    for file, message in found.items():
        yield _problem("gate-configuration", file, 1, message, hint, accepted=accepted)


def unreadable_files(bases: Iterable[Base], head: Register) -> Iterator[Problem]:
    """The files that cannot be read in the work tree, and were not as broken at every base."""
    registers = [base.register.problems if base.register else () for base in bases]
    already = set[tuple[str, str, str]].intersection(
        *({(each.file, each.rule, each.message) for each in problems} for problems in registers)
    )
    for problem in head.problems:
        known = (problem.file, problem.rule, problem.message) in already
        if problem.level is Level.ERROR and not known and not problem.rule.startswith(REMEDIATION_RULES):
            message = f"[{problem.rule}] {problem.message}"
            yield problem.model_copy(update={"rule": "gate-unread", "message": message})


def exit_code(problems: Iterable[Problem]) -> ExitCode:
    """What the problems of a branch end in."""
    errors = [problem for problem in problems if problem.level is Level.ERROR]
    return ExitCode.worst(*(CODES.get(problem.rule, ExitCode.GATE_FAILED) for problem in errors))


def remediation_error(document: Document, head: Register) -> BadDataError | None:
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


def _agree(recorded: Evidence, now: Evidence, *, elsewhere: bool = False) -> bool:
    """Return whether two pieces of evidence say the same.

    That of another environment may differ in what is installed and in its lines.
    """
    outcomes = []
    for one in (recorded, now):
        # A file of evidence has them in an order of its own.
        inputs = set(one.inputs)
        update: dict[str, Any] = {"torch": ""}
        if elsewhere:
            inputs = {each for each in inputs if each.kind in OF_REPOSITORY}
            files = {each.name for each in inputs}
            update["variants"] = {
                name: each.model_copy(update={"sites": [site for site in each.sites if site.file in files]})
                for name, each in one.verification.variants.items()
            }
        outcomes.append((one.verification.model_copy(update=update), inputs))
    return bool(outcomes[0] == outcomes[1])


def _statement(claim: ClaimResult) -> str:
    return f"{claim.variant}.{claim.metric} {claim.claimed}"


def _of_measurement(judged: Judged) -> Said:
    """What measuring a ticket again says against the branch."""
    done, before, head = judged.measured, judged.before, judged.pair.head
    for run in judged.runs:
        if run.first.error:
            yield "gate-unmeasured", f"cannot be measured{run.by}: {run.first.error}"
    # A verdict that is worse than the base's, measured or by evidence that is gone.
    if before and head:
        if done and BEST_FIRST.index(done.verdict) > BEST_FIRST.index(before.verdict):
            yield "gate-worse", f"{done.verdict}, and {before.verdict} at the base: {done.reason}"
        elif not head.files:
            text = f"its evidence is gone, which was {before.verdict} at the base: verify it again"
            yield "gate-worse", text
    # Claims with another outcome than expected, which the base did not have already.
    was = [{_statement(each) for each in one.claims if each.is_surprise} for one in judged.all_before]
    already = set[str].intersection(*was) if was else set()
    done_now = [run.first.verification for run in judged.runs if run.first.verification]
    claims = (claim for each in done_now for claim in each.claims)
    surprises = {_statement(claim): claim for claim in claims if claim.is_surprise}
    for statement, claim in surprises.items():
        if statement not in already:
            outcome = "holds" if claim.holds else "is false"
            message = f"{statement} {outcome}, which is not expected of it: measured {claim.measured}"
            yield "gate-claim", message


def _both(judged: Judged) -> Iterator[tuple[GateRun, Verification, Verification]]:
    """The runs that came out with the workload's seed and with the drawn one."""
    for run in judged.runs:
        again = run.again.verification if run.again else None
        if run.first.verification and again:
            yield run, run.first.verification, again


def _of_seed(judged: Judged) -> Said:
    """What comes out as expected with the workload's seed alone."""
    for run, before, after in _both(judged):
        with_seed = f"with seed {judged.seed}{run.by}"
        if after.verdict is Verdict.INCONCLUSIVE is not before.verdict:
            yield "gate-seed", f"{with_seed} it is {after.verdict}: {after.reason}"
            continue
        claims = {_statement(claim): claim for claim in after.claims}
        for claim in before.claims:
            other = claims.get(_statement(claim), claim)
            if claim.as_expected and not other.as_expected:
                message = f"{_statement(claim)} is as expected with the workload's seed, and not {with_seed}"
                yield "gate-seed", f"{message}: measured {other.measured}"


def _notes_of_seed(judged: Judged) -> Iterator[str]:
    """What differs with another seed, or should and does not; it refuses nothing."""
    for run, before, after in _both(judged):
        if run.by or run.again is None:
            continue
        for name, result in before.variants.items():
            other = after.variants.get(name, result)
            for metric in sorted(result.laws.keys() | other.laws.keys()):
                laws = [each.laws.get(metric, "no law") for each in (result, other)]
                if laws[0] != laws[1]:
                    yield f"{name}.{metric} is {laws[0]}, and {laws[1]} with seed {judged.seed}"
        seen = run.first.results, run.again.results
        if note := shows_little(len(before.sweep), *seen, fixed_inputs=run.again.fixed_inputs):
            yield note


def _of_evidence(judged: Judged) -> Said:
    """What the evidence that the branch brings along says against it."""
    head, own = judged.pair.head, judged.own
    if head is None:
        return
    before = [side.files for side in judged.pair.bases] or [{}]
    is_stale = head.current.verdict is Verdict.STALE
    changed = [name for name in head.current.changed if name not in head.current.environment]
    # Another build of what is installed has other evidence, which is not wrong where the outcome is the same.
    is_elsewhere = bool(head.current.environment) and not changed
    if is_stale and not is_elsewhere:
        yield "gate-stale", f"its evidence is stale; changed since it was measured: {', '.join(changed)}"
    if is_elsewhere and own and own.verification and own.evidence:
        name = Path(head.current.file or "").name
        recorded = (each for each in head.evidence if name_of(each.verification).endswith(f"/{name}"))
        if [_agree(each, own.evidence, elsewhere=True) for each in recorded] != [True]:
            other = ", ".join(head.current.environment)
            text = f"its evidence is of another environment ({other}), and here its outcome differs"
            yield "gate-evidence", text
    if head.problem:
        yield "gate-evidence", f"{head.problem.file} {head.problem.message}"
    done = own.verification if own else None
    elsewhere = []
    for file, content in head.files.items():
        if done is None or not file.endswith(f"/{name_of(done)}"):
            elsewhere.append(file)
        elif own and not head.problem and not is_stale and not is_elsewhere:
            # A measurement that did not come about is no evidence: then what the base has stays as it is.
            expected = [dump(own.evidence)] if own.evidence else [files.get(file) for files in before]
            recorded = (each for each in head.evidence if file.endswith(f"/{name_of(each.verification)}"))
            is_alike = own.evidence and any(_agree(each, own.evidence) for each in recorded)
            if content not in expected and not is_alike:
                yield "gate-evidence", f"{file} is not what was measured now, which is {done.verdict}"
    for file in elsewhere:
        if head.files[file] not in [files.get(file) for files in before]:
            yield "gate-unchecked", f"{file} is of another environment, and cannot be checked here"


def _of_document(judged: Judged) -> Said:
    """What the ticket itself says against the branch."""
    bases, head, done = judged.pair.bases, judged.pair.head, judged.measured
    if done and done.verdict is Verdict.INCONCLUSIVE and judged.before is None:
        yield "gate-inconclusive", f"{done.verdict}: {done.reason}"
    was_fixed = bases and all(is_fixed(base.document) for base in bases)
    if head and is_fixed(head.document) and not was_fixed:
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
    if head is None and any(base.files for base in bases):
        yield "gate-gone", "the ticket is gone, and has evidence at the base"
