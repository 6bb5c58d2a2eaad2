"""Judge a branch: what was measured again, against what the base has and what the branch says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, ExitCode
from finding_tickets.gate.branch import Base, Pair, Standing
from finding_tickets.history.remembered import digest
from finding_tickets.measure.isolation import Isolation
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.verdict import BEST_FIRST, Verdict
from finding_tickets.model.verification import ClaimResult, Verification
from finding_tickets.model.vocabulary import Outcome, Status
from finding_tickets.register.config import Config
from finding_tickets.register.disposition import outcome_of, status_of
from finding_tickets.register.load import Register
from finding_tickets.verify.evidence import name_of, rank
from finding_tickets.verify.intoto import written
from finding_tickets.verify.session import Settings, Verified, verify

AGAIN = "tickets verify {id}, and commit the evidence"
NAME_IT = "name what is meant with a line **Accepted change:** in the ticket, or --accept {id}"
ACCEPT = "where that is meant: --accept {id}"

REMEDIATION_RULES = "remediation-"
GUARDED = ("tickets", "evidence", "meter", "largest_file")
GUARDED_WORDS = ("id_pattern", "statuses", "outcomes")
"""Settings that decide which tickets there are and which are closed, what counts, and where evidence is."""

STARTUP = ("sitecustomize", "usercustomize")
"""Modules that Python runs before any other, where it finds them."""


@dataclass(frozen=True)
class Measurement:
    """A ticket measured again: as the branch has it, and by the base's verifier and claims where these count.

    Each is None where there was no need, or no way.
    """

    own: Verified | None = None
    held: Verified | None = None

    @property
    def all(self) -> tuple[Verified, ...]:
        """Those that there are."""
        return tuple(one for one in (self.own, self.held) if one)

    @property
    def worst(self) -> Verification | None:
        """The verification with the worse verdict."""
        done = [one.verification for one in self.all if one.verification]
        return max(done, key=lambda one: BEST_FIRST.index(one.verdict), default=None)


@dataclass(frozen=True)
class Judged:
    """A ticket of the branch with what the gate has to say about it.

    ``base`` and ``recorded`` are the verdicts that the evidence of the base and of the branch state, fresh or
    not; ``measured`` is what came of measuring it now, None where it was not measured.
    """

    pair: Pair
    base: Verdict | None
    recorded: Verdict | None
    measured: Verification | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class _Case:
    pair: Pair
    done: Measurement
    by_command: bool

    @property
    def before(self) -> Verification | None:
        """What the base has measured, in the same environment where it has been there."""
        own = self.done.own.verification if self.done.own else None
        return _likest(self.pair.before, own)


_Rule = Callable[[_Case], Iterator[tuple[str, str]]]
CODES: Mapping[str, ExitCode] = {
    "gate-unmeasured": ExitCode.BAD_DATA,
    "gate-unread": ExitCode.BAD_DATA,
    "gate-unchecked": ExitCode.INCONCLUSIVE,
    "gate-inconclusive": ExitCode.INCONCLUSIVE,
}
"""The exit code of a rule that is not ``GATE_FAILED``."""


def measure(
    pairs: Iterable[Pair],
    head: Register,
    isolation: Isolation,
    settings: Settings,
    tell: Callable[[str], None],
) -> dict[str, Measurement]:
    """Measure again what has changed, by the paths of the documents; no file is written.

    ``tell`` is told of each as soon as it is done. ``settings`` are those for the work tree.
    """
    settings = replace(settings, record=False)
    done: dict[str, Measurement] = {}
    wanted = []
    for pair in pairs:
        if pair.head and pair.why:
            if error := broken(pair.document, head):
                done[pair.document.path] = Measurement(own=Verified(pair.document, error=error))
            else:
                wanted.append(pair)
    held = [pair for pair in wanted if pair.base and pair.is_held_to_base]
    for verified in verify([pair.document for pair in wanted], isolation, settings):
        done[verified.document.path] = Measurement(own=verified)
        tell(_told(verified, ""))
    # All are at the same base.
    for verifiers in {pair.base.root for pair in held if pair.base}:
        documents = [_held_to_base(pair) for pair in held]
        for verified in verify(documents, isolation, replace(settings, verifiers=verifiers)):
            done[verified.document.path] = replace(done[verified.document.path], held=verified)
            tell(_told(verified, " by the base's verifier and claims"))
    return done


def judge(pairs: Iterable[Pair], done: Mapping[str, Measurement], named: Iterable[str]) -> tuple[Judged, ...]:
    """What to say about every ticket that the branch changes, or whose evidence is stale."""
    by_command = {name.casefold() for name in named}
    cases = (
        _Case(pair, done.get(pair.document.path, Measurement()), pair.id.casefold() in by_command)
        for pair in pairs
        if pair.why
    )
    return tuple(map(_judged, cases))


def configuration(base: Base, head: Register, *, accepted: bool) -> Iterator[Problem]:
    """What of a branch could make tickets, their state, their evidence or the measuring another one."""
    if names := _settings(base.register.config, head.config) if base.register else []:
        message = f"the configuration is another one than the base's: {', '.join(names)}"
        yield _configured("tickets.toml", message, accepted=accepted)
    for file in _startup(base.root, head.root):
        message = f"{file} is another one than the base's, and Python runs it before anything is measured"
        yield _configured(file, message, accepted=accepted)


def _settings(base: Config, head: Config) -> list[str]:
    names = [name for name in GUARDED if getattr(base, name) != getattr(head, name)]
    words = (base.vocabulary, head.vocabulary)
    return names + [name for name in GUARDED_WORDS if getattr(words[0], name) != getattr(words[1], name)]


def _startup(base: Path, head: Path) -> Iterator[str]:
    """The files that Python runs by itself where the folder is on its path, and that are new or changed."""
    for name in (f"{folder}{module}" for folder in ("", "src/") for module in STARTUP):
        for file in (f"{name}.py", f"{name}/__init__.py"):
            if digest(head / file) not in {"", digest(base / file)}:
                yield file


def _configured(file: str, message: str, *, accepted: bool) -> Problem:
    return Problem(
        level=Level.WARNING if accepted else Level.ERROR,
        rule="gate-configuration",
        file=file,
        line=1,
        message=message,
        hint=None if accepted else ACCEPT.format(id="configuration"),
    )


def unread(base: Register | None, head: Register) -> Iterator[Problem]:
    """The files that cannot be read in the work tree, and were not as broken at the base."""
    already = {(each.file, each.rule, each.message) for each in (base.problems if base else ())}
    for problem in head.problems:
        known = (problem.file, problem.rule, problem.message) in already
        if problem.level is Level.ERROR and not known and not problem.rule.startswith(REMEDIATION_RULES):
            yield replace(problem, rule="gate-unread", message=f"[{problem.rule}] {problem.message}")


def exit_code(problems: Iterable[Problem]) -> ExitCode:
    """What the problems of a branch end in."""
    errors = [problem for problem in problems if problem.level is Level.ERROR]
    return ExitCode.worst(*(CODES.get(problem.rule, ExitCode.GATE_FAILED) for problem in errors))


def _told(verified: Verified, how: str) -> str:
    what = verified.verification.verdict if verified.verification else f"not measured: {verified.error}"
    return f"{verified.document.id.value}{how}: {what}"


def broken(document: Document, head: Register) -> BadDataError | None:
    """What is wrong with a Remediation that was not understood."""
    for problem in head.problems_of(document):
        if problem.level is Level.ERROR and problem.rule.startswith(REMEDIATION_RULES):
            return BadDataError(problem.message, file=problem.file, line=problem.line, hint=problem.hint)
    return None


def _held_to_base(pair: Pair) -> Document:
    """The work tree's document with what the base's document says of the remediation."""
    if pair.base is None:
        return pair.document
    return replace(pair.document, remediation=pair.base.document.remediation)


def _judged(case: _Case) -> Judged:
    before, after = case.before, _likest(case.pair.after, None)
    return Judged(
        case.pair,
        before.verdict if before else None,
        after.verdict if after else None,
        case.done.worst,
        tuple(_problems(case)),
    )


def _likest(standing: Standing, like: Verification | None) -> Verification | None:
    """The recorded verification of the same environment, else the one that counts most."""
    recorded = [evidence.verification for evidence in standing.evidence]
    same = [one for one in recorded if like and name_of(one) == name_of(like)]
    return next(iter([*same, *sorted(recorded, key=rank)]), None)


def _problems(case: _Case) -> Iterator[Problem]:
    file, line = _place(case.pair.document)
    for name, rule in RULES.items():
        for message, hint in rule(case):
            accepted = case.by_command and name in ACCEPTABLE
            yield Problem(
                level=Level.WARNING if accepted else Level.ERROR,
                rule=name,
                file=file,
                line=line,
                message=f"{case.pair.id}: {message}",
                hint="accepted by the command line" if accepted else hint.format(id=case.pair.id),
            )


def _place(document: Document) -> tuple[str, int]:
    """Where a document says how it is measured, or else where it begins."""
    remediation = document.remediation
    return (remediation.path, remediation.span.line) if remediation else (document.path, 1)


def _unmeasured(case: _Case) -> Iterator[tuple[str, str]]:
    """A document of which nothing can be measured, because something is wrong with it."""
    for verified in case.done.all:
        if verified.error:
            by = " by the base's verifier and claims" if verified is case.done.held else ""
            yield f"cannot be measured{by}: {verified.error}", AGAIN


def _worse(case: _Case) -> Iterator[tuple[str, str]]:
    """A verdict that is worse than the base's, measured or by evidence that is gone."""
    before = case.before
    if before is None or case.pair.head is None:
        return
    done = case.done.worst
    if done and BEST_FIRST.index(done.verdict) > BEST_FIRST.index(before.verdict):
        yield f"{done.verdict}, and {before.verdict} at the base: {done.reason}", ACCEPT
    elif not case.pair.after.files:
        yield f"its evidence is gone, which was {before.verdict} at the base", AGAIN


def _claims(case: _Case) -> Iterator[tuple[str, str]]:
    """Claims with another outcome than expected, which the base did not have already."""
    before = case.before
    already = {_text(claim) for claim in before.claims if claim.is_surprise} if before else set()
    done = (one.verification.claims for one in case.done.all if one.verification)
    found = {_text(claim): claim for claims in done for claim in claims if claim.is_surprise}
    for text in (text for text in found if text not in already):
        outcome = "holds" if found[text].holds else "is false"
        yield f"{text} {outcome}, which is not expected of it: measured {found[text].measured}", ACCEPT


def _text(claim: ClaimResult) -> str:
    return f"{claim.variant}.{claim.metric} {claim.claimed}"


def _stale(case: _Case) -> Iterator[tuple[str, str]]:
    """Evidence in the branch whose inputs have changed."""
    current = case.pair.after.current
    if current.verdict is Verdict.STALE:
        yield f"its evidence is stale; changed since it was measured: {', '.join(current.changed)}", AGAIN


def _evidence(case: _Case) -> Iterator[tuple[str, str]]:
    """Evidence in the branch that is not what was measured now, or that was edited."""
    problem = case.pair.after.problem
    if problem:
        yield f"{problem.file} {problem.message}", AGAIN
    own = case.done.own
    if not own or not own.verification or problem or case.pair.after.current.verdict is Verdict.STALE:
        return
    # A measurement that did not come about is no evidence: then what the base has stays as it is.
    for file, content in case.pair.after.files.items():
        expected = written(own.evidence) if own.evidence else case.pair.before.files.get(file)
        if file.endswith(f"/{name_of(own.verification)}") and content != expected:
            yield f"{file} is not what was measured now, which is {own.verification.verdict}", AGAIN


def _unchecked(case: _Case) -> Iterator[tuple[str, str]]:
    """Evidence that the branch brings along of an environment that is not here."""
    own = case.done.own.verification if case.done.own else None
    for file, content in case.pair.after.files.items():
        here = own is not None and file.endswith(f"/{name_of(own)}")
        if not here and content != case.pair.before.files.get(file):
            yield f"{file} is of another environment, and cannot be checked here", ACCEPT


def _closed(case: _Case) -> Iterator[tuple[str, str]]:
    """A ticket that the branch closes as fixed, though it was not measured to be."""
    done = case.done.worst
    verdict = done.verdict if done else Verdict.UNVERIFIED
    closed = case.pair.head is not None and is_fixed(case.pair.head.document)
    before = case.pair.base is not None and is_fixed(case.pair.base.document)
    if closed and not before and verdict is not Verdict.VERIFIED:
        yield f"closed as fixed, and its verdict is {verdict}", ACCEPT
    elif closed and not before and _keeps(case.pair.document):
        yield "closed as fixed, and what is verified is the decision to keep the code", ACCEPT


def _keeps(document: Document) -> bool:
    """Whether a ticket is said to be fixed whose code is meant to stay."""
    keep = document.remediation is not None and document.remediation.decision == "keep"
    return keep and (outcome_of(document) is Outcome.FIXED or status_of(document) is Status.FIXED)


def _inconclusive(case: _Case) -> Iterator[tuple[str, str]]:
    """A ticket without evidence at the base that could not be measured."""
    done = case.done.worst
    if done and done.verdict is Verdict.INCONCLUSIVE and case.before is None:
        yield f"{done.verdict}: {done.reason}", ACCEPT


def is_fixed(document: Document) -> bool:
    """Whether people say of a ticket that it was resolved by a fix, or closed it without a word on how."""
    status, outcome = status_of(document), outcome_of(document)
    if status is Status.CLOSED:
        return outcome in {Outcome.FIXED, None}
    return status is Status.FIXED or (status is None and outcome is Outcome.FIXED)


def _loosened(case: _Case) -> Iterator[tuple[str, str]]:
    """Changes after which less may be demanded, and which nobody has named."""
    for change in case.pair.changes:
        if change.is_open:
            yield f"{change}, which nobody has named", NAME_IT


def _gone(case: _Case) -> Iterator[tuple[str, str]]:
    """A ticket with evidence at the base that is no longer there."""
    if case.pair.head is None and case.pair.before.files:
        yield "the ticket is gone, and has evidence at the base", ACCEPT


RULES: Mapping[str, _Rule] = {
    "gate-unmeasured": _unmeasured,
    "gate-worse": _worse,
    "gate-claim": _claims,
    "gate-stale": _stale,
    "gate-evidence": _evidence,
    "gate-unchecked": _unchecked,
    "gate-inconclusive": _inconclusive,
    "gate-closed": _closed,
    "gate-changed": _loosened,
    "gate-gone": _gone,
}
"""What a branch must not do, by name; docs/ci.md explains each."""

ACCEPTABLE = frozenset(RULES) - {"gate-unmeasured", "gate-stale", "gate-evidence"}
"""The rules that ``--accept`` turns into warnings; measuring again mends the others."""
