"""``tickets verify``: measure tickets, compare with what they claim, record the evidence."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from finding_tickets.cli.options import (
    HERE,
    Meter,
    OutputFormat,
    Query,
    Root,
    Sandbox,
    revision_option,
    timeout_option,
)
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
    write_table,
)
from finding_tickets.cli.registers import evidence_code, find_each, measurable, settings_of
from finding_tickets.cli.terminal import Progress, progress
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult, Verification
from finding_tickets.register.load import load, load_named
from finding_tickets.report.text import circumstances, verification_lines

if TYPE_CHECKING:
    from finding_tickets.register.load import Register
    from finding_tickets.register.query import Facts
    from finding_tickets.register.staleness import CurrentVerdict
    from finding_tickets.report.matrix import VerdictMatrix
    from finding_tickets.verify.matrix import Cell
    from finding_tickets.verify.verify import Executor, Settings, Verified


class ExecutorName(StrEnum):
    """Where verifications are made."""

    LOCAL = "local"
    RAY = "ray"


@dataclass(frozen=True)
class Batch:
    """Documents to verify with the same settings; in a matrix, those of the cell ``cell``."""

    documents: Sequence[Document]
    settings: Settings
    cell: str = ""

    def name(self, document: Document) -> str:
        """What a document is called while it is measured."""
        return f"{document.id.value} ({self.cell})" if self.cell else document.id.value


@dataclass(frozen=True)
class Done:
    """What is kept of a verified document: its path, its exit code, and its verification, packed."""

    path: str
    code: ExitCode
    verification: bytes | None


class Packed(Collection[Verification]):
    """Verifications as compressed JSON: there may be thousands, and each is most of a megabyte of objects."""

    def __init__(self, packs: Iterable[bytes]) -> None:
        self._packs = tuple(packs)

    def __len__(self) -> int:
        """How many verifications there are."""
        return len(self._packs)

    def __iter__(self) -> Iterator[Verification]:
        """Each verification, made anew."""
        return (Verification.model_validate_json(zlib.decompress(each)) for each in self._packs)

    def __contains__(self, one: object) -> bool:
        """Whether one is equal to this."""
        return any(each == one for each in self)


def pack(verification: Verification) -> bytes:
    """What ``Packed`` holds of a verification."""
    return zlib.compress(verification.model_dump_json().encode())


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
    if at and (base or head):
        raise UsageError(
            "--at is for all variants, --base and --head for found and fix", hint="one or the other"
        )
    revisions = {"*": at or head, "found": base, "fix": head}
    overrides = {name: revision for name, revision in revisions.items() if revision}
    if matrix and (overrides or meter):
        raise UsageError("--matrix says itself what measures, and at which revision", hint="one or the other")
    if [bool(query), everything, stale].count(True) != 1:
        raise UsageError("name the tickets to verify, or say --all or --stale", hint="one of the three")
    left_out: list[str] = []
    # Loading torch takes longer than reading the register: it starts first, unless nothing may be stale.
    with _executor(executor, address, left_out.append, at_once=not stale, sandbox=sandbox) as verifying:
        # Where tickets are named, only these are read whole, and nothing that reads queries is loaded.
        named = load_named(root, query or ())
        register = named or load(root)
        facts = None if named else _facts(register)
        cells: tuple[Cell, ...] = ()
        if matrix:
            from finding_tickets.register.staleness import own_torch
            from finding_tickets.verify.matrix import cells as cells_of

            if register.config.matrix is None:
                message, hint = (
                    "the configuration declares no matrix",
                    "[tool.tickets.matrix], docs/matrix.md",
                )
                raise UsageError(message, hint=hint)
            cells = cells_of(register.config.matrix, register.root.resolve(), own_torch())
        ids, problems = _choose(query, facts, stale=stale, matrix=matrix), register.problems
        documents, code = find_each(register.find, query or () if ids is None else ids)
        if stale and not matrix and facts:
            code = ExitCode.worst(code, _say_changed(facts))
        sound, reading = measurable(register, documents, () if ids is None else problems)
        settings = settings_of(register, meter, timeout, overrides=overrides, resources=register.config.ray)
        if overrides:
            say("measured at other revisions than the tickets say: nothing is recorded")
        batches = _by_cell(sound, settings, cells, stale=stale) if cells else [Batch(sound, settings)]
        done = _measure(sound, batches, verifying)
    verifications = Packed(one.verification for one in done if one.verification)
    made = _matrix(sound, settings, cells, verifications) if cells else None
    _show(verifications, output_format, settings, made)
    for verification in verifications:
        where = circumstances(verification) if cells else ""
        who = f"{verification.ticket} ({where})" if where else verification.ticket
        for claim in filter(_fails_the_gate, verification.claims):
            outcome = "holds" if claim.holds else "is false"
            say(f"gate failed: {who}: {claim.id} {outcome}, which is not expected of it")
    if left_out:
        code = ExitCode.worst(code, ExitCode.INCONCLUSIVE)
    stated = evidence_code(facts.looked_up if facts else ())
    return ExitCode.worst(code, reading, stated, *(one.code for one in done))


@contextmanager
def _executor(
    name: ExecutorName,
    address: str | None,
    on_left_out: Callable[[str], None],
    *,
    at_once: bool,
    sandbox: bool,
) -> Iterator[Executor]:
    """What verifies, until the block is left; ``on_left_out`` is called with machines that cannot measure."""
    if name is ExecutorName.RAY:
        from finding_tickets.executors.ray import RayCluster

        def leave_out(what: str) -> None:
            say(what)
            on_left_out(what)

        yield RayCluster(address=address, sandbox=sandbox, on_left_out=leave_out, say=say)
        return
    if address is not None:
        raise UsageError("--address is that of a Ray cluster", hint="with --executor ray")
    from finding_tickets.measure.isolation import Isolation
    from finding_tickets.verify.verify import Local

    with Isolation(at_once=at_once, sandbox=sandbox) as isolation:
        yield Local(isolation)


def _facts(register: Register) -> Facts:
    from finding_tickets.register.query import Facts

    return Facts.of(register)


def _choose(
    query: Sequence[str] | None, facts: Facts | None, *, stale: bool, matrix: bool
) -> Iterable[str] | None:
    """The IDs, each once, of the documents that are meant and have a verifier; None if IDs were given."""
    if facts is None:
        return None
    from finding_tickets.register.query import Lexicon, select

    if query and all(map(Lexicon(facts).is_id, query)):
        return None
    words = query or ()
    if stale:
        # What is stale in a cell of a matrix is decided cell by cell.
        words = ["has:verifier"] if matrix else ["verdict:stale OR verdict:unverified has:verifier"]
    rows = select(" ".join(words), facts)
    found = [row.id for row in rows if facts.has_verifier(row)]
    say(f"{len(found)} of {counted(len(rows), 'document')} with a verifier")
    return dict.fromkeys(found)


def _say_changed(facts: Facts) -> ExitCode:
    """Name what has changed since each stale document was measured; without a verifier it stays stale."""
    stale = [row for row in facts.rows if facts.measured(row).changed]
    for row in stale:
        say(f"{row.id} is stale; changed since it was measured: {', '.join(facts.measured(row).changed)}")
    return ExitCode.OK if all(map(facts.has_verifier, stale)) else ExitCode.INCONCLUSIVE


def _measure(documents: Sequence[Document], batches: Sequence[Batch], executor: Executor) -> list[Done]:
    """Verify all documents, show the progress, and return the results in the order of ``documents``."""
    names = [batch.name(document) for batch in batches for document in batch.documents]
    several = len(batches) > 1 and names
    together = executor.together(batches[0].settings) if several else nullcontext()
    with progress(names) as shown, together:
        done = [each for batch in batches for each in _measure_batch(batch, executor, shown)]
    places = {document.path: place for place, document in enumerate(documents)}
    return sorted(done, key=lambda each: places[each.path])


def _measure_batch(batch: Batch, executor: Executor, shown: Progress) -> Iterator[Done]:
    for verified in executor.verify(
        batch.documents, batch.settings, lambda document: shown.started(batch.name(document))
    ):
        verification = verified.verification
        if verified.error:
            say_error(verified.error)
        what = verification.verdict if verification else "not measured"
        shown.ended(batch.name(verified.document), what)
        packed = pack(verification) if verification else None
        yield Done(verified.document.path, _code(verified), packed)


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


def _fails_the_gate(claim: ClaimResult) -> bool:
    return claim.holds is not None and not claim.as_expected


def _show(
    verifications: Collection[Verification],
    output_format: Format,
    settings: Settings,
    made: VerdictMatrix | None,
) -> None:
    if output_format is Format.JSON:
        more = {"matrix": made.item} if made else {}
        write_json("verification", (each.model_dump(mode="json") for each in verifications), **more)
        return
    if verifications and is_terminal(sys.stdout):
        from finding_tickets.cli.terminal import write_rich
        from finding_tickets.report.terminal import VerificationView, summary
        from finding_tickets.report.text import Sources, no_line

        # The work tree is not what was measured at another revision.
        here = no_line if settings.overrides else Sources(settings.root).line
        pages = (VerificationView(each, no_line if each.revision else here) for each in verifications)
        parts = (part for page in pages for part in (page, ""))
        write_rich(sys.stdout, chain(parts, [summary(verifications)]))
    elif verifications:
        texts = ("\n".join(verification_lines(each, style)) for each in verifications)
        write_all(f"\n{text}\n" if place else f"{text}\n" for place, text in enumerate(texts))
    if made:
        numbers = [str(number) for number, _ in enumerate(made.names, 1)]
        write("")
        write_table(("CELL", "MEASURED WITH"), zip(numbers, made.names, strict=True))
        write("")
        write_table(("TICKET", *numbers), [(line.id, *line.words) for line in made.lines])
        write("\n".join(["", made.summary, *(difference.text for difference in made.differences)]))


def _by_cell(
    documents: Sequence[Document], settings: Settings, cells: Sequence[Cell], *, stale: bool
) -> list[Batch]:
    """What to measure in each cell: everything, or only what is stale there or was never measured."""
    from finding_tickets.verify.matrix import labels

    batches = []
    recorded = {document.path: _recorded(document, settings, cells) for document in documents if stale}
    for cell, name in labels(cells).items():
        wanted = []
        for document in documents:
            current = recorded.get(document.path)
            if current is None or current[cell].verdict in {Verdict.STALE, Verdict.UNVERIFIED}:
                wanted.append(document)
        batches.append(Batch(wanted, settings.within(cell), name))
    return batches


def _matrix(
    documents: Iterable[Document],
    settings: Settings,
    cells: Sequence[Cell],
    verifications: Iterable[Verification],
) -> VerdictMatrix:
    """The matrix of documents by their evidence, and by verifications of this run that left none."""
    from finding_tickets.register.staleness import CurrentVerdict
    from finding_tickets.report.matrix import verdict_matrix

    by_ticket: dict[str, list[Verification]] = {}
    for each in verifications:
        by_ticket.setdefault(each.ticket, []).append(each)
    known: dict[str, Mapping[Cell, CurrentVerdict] | None] = {}
    for document in documents:
        here = by_ticket.get(document.id.value, ())
        now = {cell: CurrentVerdict(each.verdict, each) for cell in cells for each in here if cell.has(each)}
        recorded = _recorded(document, settings, cells)
        known[document.id.value] = None if recorded is None else {**recorded, **now}
    return verdict_matrix(cells, known)


def _recorded(
    document: Document, settings: Settings, cells: Sequence[Cell]
) -> Mapping[Cell, CurrentVerdict] | None:
    """The evidence of each cell; None where it cannot be read."""
    from finding_tickets.verify.matrix import in_cells

    try:
        return in_cells(document, settings.root, settings.evidence, cells)
    except BadDataError as error:
        say(str(error))
        return None
