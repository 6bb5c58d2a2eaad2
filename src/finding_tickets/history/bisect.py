"""Find the commits that introduced a defect, fixed it and brought it back, by the claims about the code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath

from finding_tickets.claims.language import parse_condition
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError, UsageError
from finding_tickets.ground import __version__
from finding_tickets.ground.commits import Checkouts, Snapshot
from finding_tickets.ground.git import Commit, GitError, LogEntry, ask, log, shallow_commits
from finding_tickets.ground.imports import places_of
from finding_tickets.history.ticket_log import SHALLOW
from finding_tickets.history.walk import (
    CommitResult,
    CommitWalk,
    Course,
    ResultStore,
    TicketInputs,
    UnmeasuredCommit,
    WhyUnmeasured,
    key_of,
    snapshots_of,
)
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.measure.tasks import FunctionPath
from finding_tickets.model.ticket import Claim
from finding_tickets.model.verification import MeasuredTicket
from finding_tickets.model.vocabulary import SAME_RESULT, SECONDS
from finding_tickets.register.files import DiskFiles
from finding_tickets.register.staleness import own_torch
from finding_tickets.verify.judge import FIX, check
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.verify import Settings, gpu_names

OLDER = "the defect is older than the commits that were looked at"
# Metrics whose claims compare with another variant, which a commit does not have.
COMPARING = frozenset({SAME_RESULT, SECONDS})


class BisectState(StrEnum):
    """Defect: the claims about the code hold. Clean: those about the fix do. Changed: neither."""

    DEFECT = "defect"
    CHANGED = "changed"
    CLEAN = "clean"
    SKIPPED = "skipped"


class BisectTurn(StrEnum):
    """What a commit did to the defect."""

    INTRODUCED = "introduced"
    CHANGED = "changed"
    FIXED = "fixed"
    BROUGHT_BACK = "brought back"


@dataclass(frozen=True)
class BisectStep:
    """A commit that changed what the code is made of, and what was found there."""

    commit: Commit
    place: str | None  # the file that has the code
    state: BisectState
    laws: Mapping[str, str]  # of the metrics that the claims are about
    reason: str = ""  # why the commit was skipped, or which claims are false
    turn: BisectTurn | None = None
    suspects: tuple[str, ...] = ()  # the skipped commits before a turn, which may have made it as well


@dataclass(frozen=True)
class Bisection:
    """A ticket's defect through commits."""

    ticket: str
    variant: str
    steps: tuple[BisectStep, ...]  # the oldest first
    commits: int
    measured: int  # how many of them were measured now
    gaps: tuple[str, ...]  # what is not known


def bisect(
    document: Document,
    isolation: Isolation,
    settings: Settings,
    *,
    variant: str,
    good: str | None,
    bad: str,
    tell: Callable[[str], None],
) -> Bisection:
    """Check the claims about a variant at every commit that may have changed its code.

    ``tell`` is told of each measurement. Results are kept; claims that were edited are checked against them.

    Raises:
        UsageError: Nothing is claimed that commits can be checked for, or the revisions make no range.
        BadDataError: A claim cannot be understood.
    """
    root, name = settings.root, document.id.value
    todo = plan(document, root, dict.fromkeys([variant], "HEAD"), settings.verifiers)
    if todo is None:
        raise UsageError(f"{name} has no verifier", hint="bisect measures commits")
    if variant not in todo.variants:
        raise UsageError(f"{name} has no variant {variant}", hint=f"one of {', '.join(todo.variants)}")
    claims = tuple(each for each in todo.claims if each.variant == variant and each.metric not in COMPARING)
    if not claims:
        raise UsageError(f"{name} claims nothing about {variant} that can be checked at commits")
    metrics = {claim.metric for claim in claims}
    of_fix = []
    for claim in todo.claims:
        if claim.variant == FIX != variant and claim.metric in metrics:
            # What costs less than the fix is no other defect.
            is_exact = parse_condition(claim.value).relation == "=="
            value = f"<= {claim.value.strip().removeprefix('==')}" if is_exact else claim.value
            of_fix.append(claim.model_copy(update={"variant": variant, "value": value}))
    source = todo.variants[variant]
    module = source.module
    # A dotted module is looked for below src first, and then by what the commits define.
    file = module if module.endswith(".py") else f"src/{module.replace('.', '/')}.py"
    # Claims are checked afterwards, also against what is kept; only what is traced must be known before.
    traced = tuple(claim for claim in claims if claim.metric == "graph_breaks")
    todo = replace(todo, claims=traced, revisions={}, trouble=None)
    try:
        nodes = _commits(root, file, good, bad)
        with snapshots_of(root, nodes) as all_snapshots:
            if todo.run:
                files = [file] if module == file else [*places_of(module), *places_of(f"{module}.__main__")]
                # The folders of packages come before what is in them.
                found = [next(filter(snapshot.file, reversed(files)), None) for snapshot in all_snapshots]
                places = [(place, "" if place else f"there is no {module}") for place in found]
            else:
                places = list(_places(root, source.function, file, nodes, all_snapshots))[::-1]
            # Without --good, the search begins where the code does.
            missing = next((at for at, (place, _) in enumerate(places) if place), len(places))
            begun = not good and (missing > 0 or not shallow_commits(root))
            skip = 0 if good else missing
            nodes, snapshots, places = nodes[skip:], all_snapshots[skip:], places[skip:]
            if not any(place for place, _ in places):
                raise UsageError(
                    f"{source.module}:{source.function} is in none of {len(places) or skip} commits",
                    hint="commit it",
                )
            course = Course(name, _inputs(todo, variant, places, settings, gpu_names(isolation, settings)))

            def plan_at(_: Course, at: int, folder: Path) -> tuple[Document, Plan]:
                # What is run is run by the name that it has.
                there = FunctionPath((not todo.run and places[at][0]) or source.module, source.function)
                return document, replace(todo, root=folder, variants={variant: there})

            def say(_: Course, at: int) -> None:
                tell(f"measured {nodes[at].commit.id[:10]} {nodes[at].commit.subject}")

            settings = replace(settings, verifiers=root)
            CommitWalk(nodes, snapshots, ResultStore(), isolation, settings, say).run([course], plan_at)
    except RevisionError as error:
        raise UsageError(str(error)) from None
    except GitError as error:
        raise UsageError(f"cannot read git history: {error}", hint="bisect measures commits") from None
    try:
        seen = [
            _judge(BisectStep(node.commit, place, BisectState.SKIPPED, {}), result, claims, of_fix)
            for node, (place, _), result in zip(nodes, places, course.results, strict=True)
        ]
    except BadDataError as error:
        raise error.in_file(todo.document) from None
    steps = tuple(_turns(seen, course.results, begun=begun))
    decided = next((step for step in steps if step.state is not BisectState.SKIPPED), None)
    # A defect that is there at the first commit was made by none of these.
    is_older = decided is not None and decided.state is BisectState.DEFECT and decided.turn is None
    gaps = (*([OLDER] if is_older else []), *([SHALLOW] if shallow_commits(root) else []))
    return Bisection(name, variant, steps, len(nodes), course.measured, gaps)


def _commits(root: Path, file: str, good: str | None, bad: str) -> tuple[LogEntry, ...]:
    """The commits from ``good``, or from the first one, to ``bad``; the oldest first.

    Of a merge the side counts that was merged into.
    """
    checkouts = Checkouts(root)
    last = checkouts.revision(bad)
    # Its commits are not in this repository's objects, where code is looked up.
    for folder in checkouts.submodules(last):
        if file.startswith(f"{folder}/"):
            hint = "bisect needs a register there"
            raise UsageError(f"{file} is in the submodule {folder}, which has commits of its own", hint=hint)
    nodes = tuple(log(root, "--first-parent", "--reverse", last.commit, "--"))
    if not good:
        return nodes
    first = checkouts.revision(good)
    ids = [node.commit.id for node in nodes]
    if first.commit not in ids:
        hint = "name one that the branch went through; of a merge the side counts that was merged into"
        raise UsageError(f"--good {first}: not among the commits that led to {last}", hint=hint)
    return nodes[ids.index(first.commit) :]


def _places(
    root: Path, function: str, likely: str, nodes: Sequence[LogEntry], snapshots: Sequence[Snapshot]
) -> Iterator[tuple[str | None, str]]:
    """The file that has the function at each commit, the newest first; or None and why there is none.

    At the newest commit, the file ``likely`` is tried first.
    """
    name, newer = function.partition(".")[0], None
    for node, snapshot in zip(reversed(nodes), reversed(snapshots), strict=True):
        place, reason = likely, ""
        text = (snapshot.content(likely) or b"").decode(errors="replace")
        if not re.search(rf"\b{name}\b", text):
            place, reason = _elsewhere(root, node.commit.id, name, likely, newer)
        yield place or None, reason
        likely, newer = place or likely, node.commit.id


def _elsewhere(root: Path, commit: str, name: str, likely: str, newer: str | None) -> tuple[str, str]:
    """The file that has a function at a commit, if not the likely one; or nothing, and why.

    It is the only one that defines it, or the only one called alike, or what ``likely`` was called before
    the commit ``newer``, if git takes that for renamed.
    """
    defines = rf"^(async +def|def|class) +{name}\b"
    try:
        printed = ask(root, "grep", "-l", "-z", "-E", "-e", defines, commit)
    except GitError:
        # That is how it ends where it finds nothing.
        printed = ""
    files = [each.partition(":")[2] for each in printed.split("\0") if each.endswith(".py")]
    alike = [file for file in files if PurePosixPath(file).name == PurePosixPath(likely).name]
    if len(alike or files) == 1:
        return (alike or files)[0], ""
    if newer:
        options = ("--name-status", "-M", "-z", "--relative", "--diff-filter=R")
        words = iter(ask(root, "diff", *options, commit, newer).split("\0")[:-1])
        for _, old, new in zip(words, words, words, strict=True):
            if new == likely:
                return old, ""
    return "", f"{' and '.join(files)} have a {name}" if files else f"no file has a {name}"


def _inputs(
    todo: Plan,
    variant: str,
    places: Sequence[tuple[str | None, str]],
    settings: Settings,
    gpus: Sequence[str],
) -> list[TicketInputs | UnmeasuredCommit]:
    """What measuring each commit depends on; the verifier, or the command, is that of the work tree."""
    command, work = todo.run, (todo.verifier, DiskFiles(todo.verifiers).digest(todo.verifier) or "")
    if command:
        work = (f"{command.target} {command.arguments} {todo.sweep}", str(todo.within))
    shared = (
        *(__version__, own_torch(), settings.meter, gpus),
        *(todo.variants[variant].function, variant, *work),
        bool(todo.claims),
    )
    return [
        TicketInputs(key_of("bisect", *shared, place), (place,))
        if place
        else UnmeasuredCommit(kind=WhyUnmeasured.ABSENT, why=reason)
        for place, reason in places
    ]


def _judge(
    step: BisectStep, result: CommitResult, claims: Sequence[Claim], of_fix: Sequence[Claim]
) -> BisectStep:
    """The step with whether the claims hold, the laws of their metrics, and why not or why it is skipped."""
    if isinstance(result, UnmeasuredCommit):
        return replace(step, reason=result.why)
    if not result.variants:
        return replace(step, reason=result.reason)
    stated = {name: getattr(result, name) for name in ("meter", "torch", "device", "sweep", "variants")}
    measured = MeasuredTicket(**stated)
    checked, fixed = check(claims, measured), check(of_fix, measured)
    ((_, found),) = result.variants.items()
    known = {**found.growth, **found.laws}
    step = replace(step, laws={each.metric: known[each.metric] for each in checked if each.metric in known})
    if false := [claim.id for claim in checked if claim.is_surprise]:
        # A claim about the fix keeps its own name in the message.
        neither = [claim.id for claim, after in zip(of_fix, fixed, strict=True) if after.is_surprise]
        state = BisectState.CHANGED if neither else BisectState.CLEAN
        return replace(step, state=state, reason=f"not as claimed: {', '.join([*false, *neither])}")
    for claim in checked:
        if claim.holds is None:
            return replace(step, reason=f"not checked: {claim.id}: {claim.measured}")
    return replace(step, state=BisectState.DEFECT)


def _turns(
    steps: Sequence[BisectStep], results: Sequence[CommitResult], *, begun: bool
) -> Iterator[BisectStep]:
    """The steps at which the code was another one than before, oldest first, with what each one did.

    ``begun`` says whether there was no code before the first one, and so no defect.
    """
    before = BisectState.CLEAN if begun else None
    last: tuple[str | None, CommitResult] | None = None
    ever = False
    skipped: list[str] = []
    for step, result in zip(steps, results, strict=True):
        # The walk gives commits with the same input the very same result.
        if last and last[0] == step.place and (last[1] is result or not step.place):
            continue
        last = step.place, result
        if step.state is BisectState.SKIPPED:
            skipped.append(step.commit.id)
            yield step
            continue
        turn = None
        if step.state is BisectState.DEFECT:
            if before in {BisectState.CLEAN, BisectState.CHANGED}:
                turn = BisectTurn.BROUGHT_BACK if ever else BisectTurn.INTRODUCED
        elif ever and before is not step.state:
            turn = BisectTurn.FIXED if step.state is BisectState.CLEAN else BisectTurn.CHANGED
        yield replace(step, turn=turn, suspects=tuple(skipped) if turn else ())
        before, ever, skipped = step.state, ever or step.state is BisectState.DEFECT, []
