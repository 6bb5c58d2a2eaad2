"""Plan the measurement of a ticket: its verifier, its variants and its claims.

None of it is run.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finding_tickets.claims.check import ONCE, located, parse_conditions
from finding_tickets.claims.language import (
    GROWTH,
    ExpressionError,
    parse_condition,
    suggest,
)
from finding_tickets.claims.metrics import (
    CLAIMABLE,
    ENDINGS,
    OF_STATEMENTS,
    REMOVED_METRICS,
)
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError
from finding_tickets.ground.files import fixes_folder, verifier_path
from finding_tickets.ground.statements import Statement
from finding_tickets.measure.tasks import (
    At,
    FunctionPath,
    Further,
    Job,
    ResultPair,
    RunJob,
    find_variants,
)
from finding_tickets.model.ticket import (
    Claim,
    Remediation,
    RunCommand,
    Span,
    StatementRef,
)
from finding_tickets.model.vocabulary import ELSEWHERE, SAME_RESULT

if TYPE_CHECKING:
    from finding_tickets.ground.commits import Revision

# Stands for all variants that name no revision themselves.
EVERY = "*"
# The variant that is the code at the base, where a branch is checked.
BASE = "base"
# Stands for the place of a point, in the name of a run that is made twice.
AGAIN = "again"
# The same, of a run that is counted outside of its function, too.
WHOLE = "whole"


@dataclass(frozen=True)
class Plan:
    """Everything a verification needs to know of a ticket."""

    document: Document
    root: Path  # what the files of the code are relative to
    verifiers: Path  # what the verifier is relative to
    repository: Path  # the folder in which git knows the revisions
    verifier: str  # empty where there is something to run
    variants: dict[str, FunctionPath]
    revisions: dict[str, Revision] = field(
        default_factory=dict
    )  # of variants that are not those at the root
    keep: bool = False  # whether the decision is to keep the code as found
    claims: tuple[Claim, ...] = ()
    trouble: str = (
        ""  # why nothing can be measured, although nothing is wrong with the document
    )
    run: RunCommand | None = None  # what is run in the place of a verifier
    sweep: tuple[At, ...] = (ONCE,)  # the points that it is run at
    within: str | None = None  # the function that is counted
    place: StatementRef | None = None  # the statement that claims are about
    moved: tuple[StatementRef, ...] = ()  # those of the fix that wait in its stead
    excused: tuple[
        Statement, ...
    ] = ()  # those that other tickets and budgets of the register answer for
    is_closed: bool = False  # whether code may have gone on since it was fixed: have other results and waits
    stated: str = ""  # where the document says what to run
    seed: int | None = None  # takes the place of the workload's
    further: Further = ""  # the points that are added to those of the sweep
    differs: tuple[
        str, ...
    ] = ()  # what may differ between found and fix, of what is run
    data: tuple[
        str, ...
    ] = ()  # the files and folders that it needs and that git has not
    # The cheats that take the place of variants: what a job for one has beside that of the variant.
    cheats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the work tree that are known to be run before running anything."""
        here = (
            source.module
            for name, source in self.variants.items()
            if name not in self.revisions
        )
        files = [
            self.verifier,
            *(file for file in here if file.endswith(".py")),
            *self.data,
        ]
        return tuple(dict.fromkeys(filter(None, files)))

    @property
    def comparisons(self) -> tuple[ResultPair, ...]:
        """Return the pairs of results that the claims compare."""
        claims = (claim for claim in self.claims if claim.metric == SAME_RESULT)
        return tuple(
            dict.fromkeys(
                ResultPair(each.variant, each.value, each.tolerance) for each in claims
            )
        )

    @cached_property
    def folders(self) -> dict[str, str]:
        """Return the folder that the code of each variant is in.

        Raises:
            RevisionError: A revision cannot be checked out.
        """
        folders = dict.fromkeys(self.variants, str(self.root))
        if self.revisions:
            from finding_tickets.ground.commits import Checkouts

            checkouts = Checkouts(self.repository)
            for name, revision in self.revisions.items():
                folders[name] = str(checkouts.files(revision))
        return folders

    def jobs(self, meter: str, *, operations: bool = False) -> dict[str, Job]:
        """Return the job for each variant by its name; each gets its own process."""
        traced = {
            claim.variant for claim in self.claims if claim.metric == "graph_breaks"
        }
        kept = {
            name for each in self.comparisons for name in (each.variant, each.target)
        }
        return {
            name: Job(
                root=str(self.verifiers),
                code=self.folders[name],
                verifier=self.verifier,
                variant=name,
                function=source,
                meter=meter,
                graph_breaks=name in traced,
                keeps=name in kept,
                seed=self.seed,
                further=self.further,
                operations=operations,
            )
            for name, source in self.variants.items()
        }

    def run_jobs(self, meter: str, *, operations: bool = False) -> dict[str, RunJob]:
        """Return the job for each variant at each point, by the variant and the index of the point.

        The first point is run twice on the simulated device, to find costs that differ.
        """
        command, jobs = self.run, dict[str, RunJob]()
        if command is None:
            return jobs
        for name in self.variants:
            for place, at in enumerate(self.sweep):
                jobs[f"{name} {place}"] = RunJob(
                    code=self.folders[name],
                    work_tree=str(self.repository),
                    kind=command.kind,
                    target=fill_template(command.target, at),
                    arguments=tuple(
                        fill_template(text, at) for text in command.arguments
                    ),
                    sweep=() if at == ONCE else (at,),
                    within=self.within or "",
                    stated=self.stated,
                    data=self.data,
                    meter=meter,
                    own_lines=self.place is not None,
                    with_chains=self.place is not None,
                    keeps=str(place) if self.comparisons else "",
                    operations=operations,
                )
            if meter == "simulated" and name != BASE:
                keeps = AGAIN if self.comparisons else ""
                jobs[f"{name} {AGAIN}"] = replace(
                    jobs[f"{name} 0"],
                    repeated=True,
                    keeps=keeps,
                )
            if self.place and self.within:
                # A wait that is moved out of the function is moved all the same.
                jobs[f"{name} {WHOLE}"] = replace(
                    jobs[f"{name} 0"], within="", keeps=""
                )
        return jobs


def fill_template(template: str, at: At) -> str:
    """Return an argument with the values of a point in its braces."""
    return re.sub(r"\{(\w+)\}", lambda match: str(at.get(match[1], match[0])), template)


def plan(
    document: Document,
    root: Path,
    overrides: Mapping[str, str] | None = None,
    verifiers: Path | None = None,
    repository: Path | None = None,
) -> Plan | None:
    """Plan the verification of a document of the register at ``root``; None if it has no verifier.

    ``overrides`` are revisions for variants by name, ``*`` for variants that name no revision. The verifier
    is taken from the folder ``verifiers``, by default the root. Git is asked in the folder ``repository``, by
    default the root.

    Raises:
        BadDataError: A file is missing or outside the root, or a claim cannot be understood.
    """
    stated, place = stated_in(document), verifiers or root
    run, claims = stated.run, stated.claims
    verifier = "" if run else verifier_of(document, place)
    if verifier is None:
        return None
    if run and "fix" not in stated.variants:
        # What is claimed of the fix is checked once there is one.
        claims = tuple(claim for claim in claims if claim.variant != "fix")
    try:
        if verifier:
            _check_file(verifier, place)
        variants = _variants(document, root)
        named = _name_revisions(stated, variants, overrides or {})
        for name, source in variants.items():
            if not (run or name in named) and source.module.endswith(".py"):
                _check_file(source.module, root)
        for claim in claims:
            _check_claim(claim, variants, is_placed=stated.place is not None)
    except BadDataError as error:
        raise error.in_file(stated.path, stated.span.line or None) from None
    where = f"{stated.path}:{run.line}" if run else ""
    revisions: dict[str, Revision] = {}
    trouble = "" if variants else "there is no variant to measure"
    try:
        if named:
            revisions = _resolve(repository or root, named, variants)
        for name, source in variants.items():
            is_missing = (
                source.module.endswith(".py") and not (root / source.module).is_file()
            )
            if run and is_missing and name not in named:
                raise RevisionError(
                    f"{name}: there is no file {source.module} in the work tree"
                )
    except RevisionError as error:
        trouble = str(error)
        if stated.place:
            trouble += "; fetch its commit, or pin found to one that has the statement"
        if where:
            trouble += f" ({where})"
    return Plan(
        document=document,
        root=root,
        verifiers=place,
        repository=repository or root,
        verifier=verifier,
        variants=variants,
        revisions=revisions,
        keep=stated.decision == "keep",
        claims=claims,
        trouble=trouble,
        run=run,
        sweep=stated.sweep or (ONCE,),
        within=stated.within,
        place=stated.place,
        moved=stated.moved,
        differs=stated.differs,
        data=stated.data,
        stated=where,
    )


def stated_in(document: Document) -> Remediation:
    """Return the Remediation of a document, or one that states nothing."""
    return document.remediation or Remediation(
        verifier=None,
        variants={},
        decision="fix",
        claims=(),
        unmeasured=(),
        checklist=(),
        path=document.path,
        span=Span(0, 0, 0),
        digest="",
    )


def verifier_of(document: Document, root: Path) -> str | None:
    """The verifier that a document names, or what it runs, or the usual one where that exists, or none."""
    stated = stated_in(document)
    if stated.verifier or stated.run:
        return stated.verifier or (stated.run.target if stated.run else None)
    usual = verifier_path(document.id.value)
    return usual if (root / usual).is_file() else None


def places_of(document: Document, root: Path) -> dict[str, str]:
    """Return the place of each variant: ``module:function``, with ``@REV`` if one is stated."""
    stated, places = stated_in(document), {}
    refs = stated.variants
    if stated.run:
        return {name: ref.raw for name, ref in refs.items()}
    for name, source in _variants(document, root).items():
        revision = refs[name].revision if name in refs else None
        places[name] = (
            f"{source.module}:{source.function}{f'@{revision}' if revision else ''}"
        )
    return places


def _variants(document: Document, root: Path) -> dict[str, FunctionPath]:
    """The block's variants and those in the usual folder that claims name; without a block, all there."""
    folder, stated = fixes_folder(document.id.value), stated_in(document)
    refs = stated.variants
    if stated.run:
        module, _, function = stated.run.target.partition(":")
        return dict.fromkeys(refs, FunctionPath(module, function.removeprefix(":")))
    if not refs:
        return find_variants(folder, root)
    found = {name: FunctionPath(ref.module, ref.function) for name, ref in refs.items()}
    function = next(iter(refs.values())).function
    for claim in stated.claims:
        compared = (
            re.findall(r"\w+", claim.value) if claim.metric == SAME_RESULT else ()
        )
        for name in (claim.variant, *compared):
            usual = f"{folder}/{name}.py"
            if name not in found and (root / usual).is_file():
                found[name] = FunctionPath(usual, function)
    return found


def _name_revisions(
    stated: Remediation,
    variants: Mapping[str, FunctionPath],
    overrides: Mapping[str, str],
) -> dict[str, str]:
    """Return the revisions that variants are measured at; one in the work tree has none."""
    named = {}
    for name in variants:
        own = stated.variants[name].revision if name in stated.variants else None
        revision = overrides[name] if name in overrides else own or overrides.get(EVERY)
        if revision:
            named[name] = revision
    return named


def _resolve(
    repository: Path, named: Mapping[str, str], variants: Mapping[str, FunctionPath]
) -> dict[str, Revision]:
    """Return the revisions of variants. Raise RevisionError if one, or a file at it, does not exist."""
    # Most tickets name no revision, and git is not asked for them.
    from finding_tickets.ground.commits import Checkouts

    checkouts = Checkouts(repository)
    found: dict[str, Revision] = {}
    for name, text in named.items():
        try:
            revision = found[name] = checkouts.revision(text)
        except RevisionError as error:
            raise RevisionError(f"{name}: {error}") from None
        file = variants[name].module
        if file.endswith(".py") and not checkouts.has(revision, file):
            raise RevisionError(f"{name}: there is no file {file} at {revision}")
    return found


def _check_file(file: str, root: Path) -> None:
    path = (root / file).resolve()
    if not path.is_relative_to(root.resolve()):
        raise BadDataError(f"{file} leaves the repository")
    if not path.is_file():
        close = difflib.get_close_matches(
            path.name, [each.name for each in path.parent.glob("*.py")], n=1
        )
        nearby = [
            (path.parent / name).relative_to(root.resolve()).as_posix()
            for name in close
        ]
        hint = f"did you mean {nearby[0]}?" if nearby else None
        raise BadDataError(f"there is no file {file}", hint=hint)


def _check_claim(
    claim: Claim, variants: Mapping[str, FunctionPath], *, is_placed: bool
) -> None:
    if claim.id == ELSEWHERE:
        return
    words = [
        ("variant", claim.variant, list(variants)),
        ("metric", claim.metric, list(CLAIMABLE)),
    ]
    if claim.metric == SAME_RESULT:
        words.append(("variant", claim.value, list(variants)))
    for kind, word, known in words:
        if word not in known:
            message = f"claim {claim.id}: unknown {kind} '{word}'"
            hint = REMOVED_METRICS.get(word) if kind == "metric" else None
            raise BadDataError(
                message, line=claim.line, hint=hint or suggest(word, known)
            )
    if is_placed and claim.metric not in {*OF_STATEMENTS, *ENDINGS}:
        message = f"claim {claim.id}: {claim.metric} is not known of a statement"
        hint = f"one of {', '.join(OF_STATEMENTS)}; a ticket without place claims it of the whole run"
        raise BadDataError(message, line=claim.line, hint=hint)
    if claim.metric == SAME_RESULT and claim.value == claim.variant:
        hint = "name the variant whose results are expected, such as found"
        raise BadDataError(
            f"claim {claim.id}: compares {claim.variant} with itself",
            line=claim.line,
            hint=hint,
        )
    with located(claim.id, claim.line):
        if claim.metric != SAME_RESULT:
            parse_condition(claim.value)
        for name, condition in parse_conditions(claim.at).items():
            if condition.relation == GROWTH:
                raise ExpressionError(f"{name}: a growth class selects no points")
