"""``tickets verify``: measure tickets, compare with what they claim, record the evidence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from finding_tickets.cli.options import (
    HERE,
    MEASURING,
    Measuring,
    OutputFormat,
    Query,
    Root,
    Seed,
    find_each,
    flag,
    option,
)
from finding_tickets.cli.output import (
    Format,
    say,
    say_error,
    style,
    terminal_size,
    write,
    write_json,
)
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.ticket import Problem
from finding_tickets.model.verification import Verification
from finding_tickets.model.vocabulary import REMEDIATION_RULES, Level
from finding_tickets.register.load import Register, files_of, load
from finding_tickets.report.text import counted
from finding_tickets.report.verification import summary_lines, verification_lines
from finding_tickets.verify.verify import Settings, Verified
from finding_tickets.verify.verify import verify as run

ExecutorName = StrEnum("ExecutorName", ["LOCAL", "RAY"])
Measure = Callable[..., Iterator[Verified]]


def verify(
    query: Query = None,
    everything: Annotated[
        bool, flag("--all", "Every document that has a verifier.")
    ] = False,
    stale: Annotated[
        bool, flag("--stale", "Every document with stale evidence or none.")
    ] = False,
    root: Root = HERE,
    how: Measuring = MEASURING,
    at: Annotated[
        str | None, option("REV", "Measure variants without a revision at this one.")
    ] = None,
    base: Annotated[
        str | None, option("REV", "Measure found at this revision; record nothing.")
    ] = None,
    head: Annotated[
        str | None,
        option("REV", "Measure the fix, and variants without a revision, at this one."),
    ] = None,
    executor: Annotated[
        ExecutorName, typer.Option(help="On this machine or a cluster.")
    ] = ExecutorName.LOCAL,
    address: Annotated[
        str | None,
        option("HOST:PORT", "The Ray cluster, or auto; else one is started."),
    ] = None,
    seed: Seed = None,
    verbose: Annotated[
        bool, flag("--verbose", "Print every claim, point and line.", "-v")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Measure tickets and compare with what they claim."""
    if at and (base or head):
        what = "--at is for all variants, --base and --head for found and fix"
        raise UsageError(what, hint="one or the other")
    revisions = {"*": at or head, "found": base, "fix": head}
    overrides = {name: revision for name, revision in revisions.items() if revision}
    if [bool(query), everything, stale].count(True) != 1:
        raise UsageError(
            "name the tickets to verify, or say --all or --stale",
            hint="one of the three",
        )
    if address is not None and executor is not ExecutorName.RAY:
        raise UsageError("--address needs --executor ray")
    with ExitStack() as stack:
        if executor is ExecutorName.RAY:
            from finding_tickets.executors.ray import RayCluster

            measure: Measure = RayCluster(address=address).verify
        else:
            # Loading torch takes longer than reading the register: it starts first, unless none may be stale.
            isolation = stack.enter_context(Isolation(at_once=not stale))
            measure = partial(run, isolation=isolation)
        register, documents, chosen = _choose(root, list(query or ()), stale=stale)
        settings = how.settings(
            register, overrides=overrides, seed=seed, operations=verbose
        )
        if seed is not None:
            say(f"measured with seed {seed}: nothing is recorded")
        if overrides:
            say("measured at other revisions than the tickets say: nothing is recorded")
        verifications, measured = _measure(documents, settings, measure)
    _show(verifications, output_format, verbose=verbose)
    return ExitCode.worst(chosen, measured)


def verify_one(
    root: Path, ticket: str, how: Measuring, *, record: bool
) -> Verification | None:
    """Measure one document, and record its evidence if wanted.

    Raises:
        BadDataError: Its Remediation cannot be read or measured, or its evidence not be written.
    """
    with Isolation() as isolation:
        register = load(root)
        sound, _ = measurable(register, [register.find(ticket)])
        if not sound:
            raise BadDataError(
                f"{ticket} cannot be measured", hint=f"tickets lint {ticket}"
            )
        say(f"measuring {ticket}")
        settings = how.settings(register, record=record)
        (done,) = run(sound, isolation, settings)
    if done.error:
        raise done.error
    if done.verification:
        say(f"{ticket}: {done.verification.verdict}: {done.verification.reason}")
    return done.verification


def _choose(
    root: Path, words: list[str], *, stale: bool
) -> tuple[Register, list[Document], ExitCode]:
    """The register, and the documents of it that are meant and can be measured, each once."""
    register = load(root)
    selected = _select(register, words, stale=stale)
    ids, code = selected or (words, ExitCode.OK)
    documents, found = find_each(register.find, ids)
    # A document that cannot be read may be one that a query means.
    sound, reading = measurable(
        register, documents, register.problems if selected else ()
    )
    return register, sound, ExitCode.worst(code, found, reading)


def _select(
    register: Register, words: list[str], *, stale: bool
) -> tuple[list[str], ExitCode] | None:
    """The IDs of the documents with a verifier that a query means, or that are stale; None for mere IDs."""
    if words and all(map(register.is_id, words)):
        return None
    from finding_tickets.register.query import select

    text = " ".join(words)
    if stale:
        text = "verdict:stale,unverified has:verifier"
    rows = select(text, register)
    if words and not rows:
        raise UsageError(f"no document matches {text}", hint="tickets list shows them")
    ids = [row.id for row in rows if register.has_verifier(row)]
    say(f"{len(ids)} of {counted(len(rows), 'document')} with a verifier")
    codes = []
    for row in (
        row for row in register.entries if stale and register.measured(row).changed
    ):
        say(
            f"{row.id} is stale; changed since it was measured: {', '.join(register.measured(row).changed)}"
        )
        # Without a verifier it stays stale.
        codes += [] if register.has_verifier(row) else [ExitCode.INCONCLUSIVE]
    return list(dict.fromkeys(ids)), ExitCode.worst(*codes)


def measurable(
    register: Register, documents: Iterable[Document], problems: Iterable[Problem] = ()
) -> tuple[list[Document], ExitCode]:
    """The documents whose Remediation could be read.

    Errors in their files, and those in ``problems``, make the code bad data. Those are printed by which a
    document cannot be measured; the others are counted.
    """
    files = [(document, files_of(document)) for document in documents]
    theirs = [
        problem
        for _, own in files
        for problem in register.problems
        if problem.file in own
    ]
    errors = [
        problem
        for problem in dict.fromkeys([*problems, *theirs])
        if problem.level is Level.ERROR
    ]
    told = set()
    sound = []
    for document, own in files:
        broken = [
            each
            for each in errors
            if each.file in own and each.rule.startswith(REMEDIATION_RULES)
        ]
        sound += [] if broken else [document]
        told.update(broken)
        for problem in broken:
            say(f"{document.id.value}: not measured: {problem}")
    if left := len(errors) - len(told):
        say(
            f"{counted(left, 'error')} in other parts of the register; tickets lint prints them"
        )
    return sound, ExitCode.BAD_DATA if errors else ExitCode.OK


def _measure(
    documents: Sequence[Document], settings: Settings, measure: Measure
) -> tuple[list[Verification], ExitCode]:
    """Verify all documents and show the progress. Return their verifications in the same order."""
    if documents:
        say(f"measuring {', '.join(document.id.value for document in documents)}")
    found: dict[str, Verification] = {}
    codes = []
    for number, verified in enumerate(measure(documents, settings=settings), 1):
        if verified.error:
            say_error(verified.error)
        verdict = "not measured"
        if verified.verification:
            verdict = verified.verification.verdict
            found[verified.document.path] = verified.verification
        say(f"[{number}/{len(documents)}] {verified.document.id.value}: {verdict}")
        codes.append(code_of(verified))
    ordered = [found[document.path] for document in documents if document.path in found]
    return ordered, ExitCode.worst(*codes)


def code_of(verified: Verified) -> ExitCode:
    """Return the exit code of one document. A claim that was not checked is inconclusive."""
    if verified.error or verified.verification is None:
        return ExitCode.BAD_DATA
    if any(claim.is_surprise for claim in verified.verification.claims):
        return ExitCode.GATE_FAILED
    # An unchecked claim must not look like one that holds.
    return ExitCode.OK if verified.verification.is_settled else ExitCode.INCONCLUSIVE


def _show(
    verifications: Sequence[Verification], output_format: Format, *, verbose: bool
) -> None:
    """Print the verifications as JSON or as text.

    Of several, only those that need attention are shown, one line each.
    """
    if output_format is Format.JSON:
        write_json(
            "verification", (each.model_dump(mode="json") for each in verifications)
        )
        return
    width = terminal_size(sys.stdout).columns
    pages = []
    for each in verifications:
        if verbose or len(verifications) == 1 or not each.is_settled:
            pages.append(
                "\n".join(verification_lines(each, style, width, is_brief=not verbose))
            )
    if len(verifications) > 1:
        pages.append("\n".join(summary_lines(verifications, style, width)))
    if pages:
        write("\n\n".join(pages))
