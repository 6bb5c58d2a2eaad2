"""``tickets verify``: measure tickets, compare with what they claim, record the evidence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from finding_tickets.cli.choosing import Query, chosen, named
from finding_tickets.cli.matrix import Batch, by_cell, declared, seen, show
from finding_tickets.cli.measuring import (
    Meter,
    Sandbox,
    revision_option,
    settings_of,
    sound_ones,
    timeout_option,
)
from finding_tickets.cli.options import HERE, OutputFormat, Root
from finding_tickets.cli.output import (
    Format,
    counted,
    is_terminal,
    say,
    say_error,
    style,
    write,
    write_all,
    write_json,
)
from finding_tickets.cli.packed import Packed, pack
from finding_tickets.cli.progress import Progress, progress
from finding_tickets.cli.reading import evidence_code, find_all
from finding_tickets.documents.reading import Document
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult, Verification
from finding_tickets.register.load import load
from finding_tickets.register.query import Facts
from finding_tickets.report.verification import circumstances, lines

if TYPE_CHECKING:
    from finding_tickets.report.matrix import Matrix
    from finding_tickets.verify.executor import Executor
    from finding_tickets.verify.session import Settings, Verified


class ExecutorName(StrEnum):
    """Where verifications are made."""

    LOCAL = "local"
    RAY = "ray"


def verify(
    query: Query = None,
    everything: Annotated[bool, typer.Option("--all", help="Every document that has a verifier.")] = False,
    stale: Annotated[
        bool, typer.Option("--stale", help="Every document with stale evidence or none.")
    ] = False,
    root: Root = HERE,
    meter: Meter = None,
    timeout: Annotated[float | None, timeout_option("Stop a verification after this time.")] = None,
    at: Annotated[
        str | None, revision_option("Measure variants that name no revision at this one; record nothing.")
    ] = None,
    base: Annotated[str | None, revision_option("Measure found at this revision; record nothing.")] = None,
    head: Annotated[
        str | None, revision_option("Measure the fix, and variants that name none, at this one.")
    ] = None,
    sandbox: Sandbox = False,
    executor: Annotated[
        ExecutorName, typer.Option(help="Where to verify: on this machine, or on a Ray cluster.")
    ] = ExecutorName.LOCAL,
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The Ray cluster, or auto; else one is started for the run."),
    ] = None,
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Measure in every cell of the matrix that the configuration has.")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Measure tickets and compare the laws with what they claim."""
    overrides = _overrides(at, base, head)
    if matrix and (overrides or meter):
        raise UsageError("--matrix says itself what measures, and at which revision", hint="one or the other")
    if [bool(query), everything, stale].count(True) != 1:
        raise UsageError("name the tickets to verify, or say --all or --stale", hint="one of the three")
    # Loading torch takes longer than reading the register: it starts first, unless nothing may be stale.
    left_out: list[str] = []
    with _executor(executor, address, left_out.append, at_once=not stale, sandbox=sandbox) as verifying:
        register = load(root)
        facts = Facts.of(register)
        ids = named(query, facts)
        cells = declared(register) if matrix else ()
        documents, code = find_all(register, ids or _chosen(_words(query, stale=stale, matrix=matrix), facts))
        if stale and not matrix:
            code = ExitCode.worst(code, _say_changed(facts))
        sound, reading = sound_ones(register, documents, () if ids else register.problems)
        settings = settings_of(register, meter, timeout, overrides=overrides, resources=register.config.ray)
        if overrides:
            say("measured at other revisions than the tickets say: nothing is recorded")
        batches = by_cell(sound, settings, cells, stale=stale) if cells else [Batch(sound, settings)]
        done = _measure(sound, batches, verifying)
    verifications = Packed(one.verification for one in done if one.verification)
    made = seen(sound, settings, cells, verifications) if cells else None
    _show(verifications, output_format, settings, made)
    for verification in verifications:
        _say_failures(verification, circumstances(verification) if cells else "")
    if left_out:
        code = ExitCode.worst(code, ExitCode.INCONCLUSIVE)
    return ExitCode.worst(code, reading, evidence_code(facts.looked_up), *(one.code for one in done))


@contextmanager
def _executor(
    name: ExecutorName,
    address: str | None,
    on_left_out: Callable[[str], None],
    *,
    at_once: bool,
    sandbox: bool,
) -> Iterator[Executor]:
    """What verifies, until the block is left; ``on_left_out`` is told of machines that cannot measure."""
    if name is ExecutorName.RAY:
        from finding_tickets.executors.executor import RayCluster

        def tell(what: str) -> None:
            say(what)
            on_left_out(what)

        yield RayCluster(address=address, sandbox=sandbox, tell=tell, say=say)
        return
    if address is not None:
        raise UsageError("--address is that of a Ray cluster", hint="with --executor ray")
    from finding_tickets.measure.isolation import Isolation
    from finding_tickets.verify.executor import Local

    with Isolation(at_once=at_once, sandbox=sandbox) as isolation:
        yield Local(isolation)


def _overrides(at: str | None, base: str | None, head: str | None) -> dict[str, str]:
    """The revisions of variants by name, as ``plan`` takes them."""
    if at and (base or head):
        raise UsageError(
            "--at is for all variants, --base and --head for found and fix", hint="one or the other"
        )
    named = {"*": at or head, "found": base, "fix": head}
    return {name: revision for name, revision in named.items() if revision}


def _words(query: list[str] | None, *, stale: bool, matrix: bool) -> list[str] | None:
    """What chooses the documents; which of them are stale in a cell is found out later."""
    if not stale:
        return query
    return ["has:verifier"] if matrix else ["verdict:stale OR verdict:unverified has:verifier"]


def _chosen(words: Iterable[str] | None, facts: Facts) -> Iterable[str]:
    """The IDs, each once, of the documents that a query means and that have a verifier."""
    rows = chosen(words, facts)
    measurable = [row.id for row in rows if facts.has_verifier(row)]
    say(f"{len(measurable)} of {counted(len(rows), 'document')} with a verifier")
    return dict.fromkeys(measurable)


def _say_changed(facts: Facts) -> ExitCode:
    """Name what has changed since each stale document was measured; without a verifier it stays stale."""
    stale = [row for row in facts.rows if facts.measured(row).changed]
    for row in stale:
        say(f"{row.id} is stale; changed since it was measured: {', '.join(facts.measured(row).changed)}")
    return ExitCode.OK if all(map(facts.has_verifier, stale)) else ExitCode.INCONCLUSIVE


@dataclass(frozen=True)
class Done:
    """What is kept of a document that was verified: its path, its exit code, and how it is to be shown."""

    path: str
    code: ExitCode
    verification: bytes | None


def _measure(documents: Sequence[Document], batches: Sequence[Batch], executor: Executor) -> list[Done]:
    """Verify all, tell of each as soon as it is done, and return them in the order of ``documents``."""
    names = [batch.name(document) for batch in batches for document in batch.documents]
    several = len(batches) > 1 and names
    together = executor.together(batches[0].settings) if several else nullcontext()
    with progress(names) as shown, together:
        done = [each for batch in batches for each in _each(batch, executor, shown)]
    places = {document.path: place for place, document in enumerate(documents)}
    return sorted(done, key=lambda each: places[each.path])


def _each(batch: Batch, executor: Executor, shown: Progress) -> Iterator[Done]:
    for verified in executor.verify(
        batch.documents, batch.settings, lambda document: shown.started(batch.name(document))
    ):
        if verified.error:
            say_error(verified.error)
        what = verified.verification.verdict if verified.verification else "not measured"
        shown.ended(batch.name(verified.document), what)
        packed = pack(verified.verification) if verified.verification else None
        yield Done(verified.document.path, _code(verified), packed)


def _show(
    verifications: Collection[Verification], output_format: Format, settings: Settings, made: Matrix | None
) -> None:
    if output_format is Format.JSON:
        more = {"matrix": made.item} if made else {}
        write_json("verification", (each.model_dump(mode="json") for each in verifications), **more)
        return
    if verifications and is_terminal(sys.stdout):
        _show_on_terminal(verifications, settings)
    elif verifications:
        write_all(_pages(verifications))
    if made:
        write("")
        show(made)


def _pages(verifications: Iterable[Verification]) -> Iterator[str]:
    for place, verification in enumerate(verifications):
        page = "\n".join(lines(verification, style))
        yield f"\n{page}\n" if place else f"{page}\n"


def _show_on_terminal(verifications: Collection[Verification], settings: Settings) -> None:
    from finding_tickets.cli.console import write_rich
    from finding_tickets.report.sources import Sources, no_line
    from finding_tickets.report.terminal.verification import Measured, summary

    # What stands in the work tree is not what was measured at another revision.
    here = no_line if settings.overrides else Sources(settings.root).line
    pages = (Measured(each, no_line if each.revision else here) for each in verifications)
    parts = (part for page in pages for part in (page, ""))
    write_rich(sys.stdout, chain(parts, [summary(verifications)]))


def _say_failures(verification: Verification, where: str) -> None:
    who = f"{verification.ticket} ({where})" if where else verification.ticket
    for claim in filter(_fails_the_gate, verification.claims):
        outcome = "holds" if claim.holds else "is false"
        say(f"gate failed: {who}: {claim.id} {outcome}, which is not expected of it")


def _fails_the_gate(claim: ClaimResult) -> bool:
    return claim.holds is not None and not claim.as_expected


def _code(verified: Verified) -> ExitCode:
    """What one document contributes to the exit code; a claim that was not checked fails no gate."""
    if verified.error or verified.verification is None:
        return ExitCode.BAD_DATA
    claims = verified.verification.claims
    if any(map(_fails_the_gate, claims)):
        return ExitCode.GATE_FAILED
    undecided = verified.verification.verdict in {Verdict.INCONCLUSIVE, Verdict.UNVERIFIED}
    unchecked = any(claim.holds is None for claim in claims)
    return ExitCode.INCONCLUSIVE if undecided or unchecked else ExitCode.OK
