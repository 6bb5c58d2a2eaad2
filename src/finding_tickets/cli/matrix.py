"""``tickets verify --matrix``: which cells there are, what is to be measured in each, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finding_tickets.cli.output import say, write, write_table
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.model.verdict import Verdict
from finding_tickets.register.load import Register

if TYPE_CHECKING:
    from finding_tickets.model.verification import Verification
    from finding_tickets.report.matrix import Matrix
    from finding_tickets.verify.cells import Cell
    from finding_tickets.verify.evidence import Current
    from finding_tickets.verify.session import Settings

_TO_MEASURE = {Verdict.STALE, Verdict.UNVERIFIED}


@dataclass(frozen=True)
class Batch:
    """Documents to verify by the same settings, those of a cell under its name."""

    documents: Sequence[Document]
    settings: Settings
    cell: str = ""

    def name(self, document: Document) -> str:
        """What a document is called while it is measured."""
        return f"{document.id.value} ({self.cell})" if self.cell else document.id.value


def declared(register: Register) -> tuple[Cell, ...]:
    """The cells of the matrix that the configuration declares.

    Raises:
        UsageError: It declares none.
    """
    from finding_tickets.verify.cells import cells
    from finding_tickets.verify.evidence import own_torch

    if register.config.matrix is None:
        raise UsageError("the configuration declares no matrix", hint="[tool.tickets.matrix], docs/matrix.md")
    return cells(register.config.matrix, register.root.resolve(), own_torch())


def by_cell(
    documents: Sequence[Document], settings: Settings, cells: Sequence[Cell], *, stale: bool
) -> list[Batch]:
    """What is to be measured in each cell: everything, or only what is stale there or was never measured."""
    from finding_tickets.verify.cells import labels

    known = {document.path: _known(document, settings, cells) if stale else None for document in documents}
    return [
        Batch(
            [document for document in documents if _is_wanted(known[document.path], cell)],
            settings.within(cell),
            name,
        )
        for cell, name in labels(cells).items()
    ]


def seen(
    documents: Iterable[Document],
    settings: Settings,
    cells: Sequence[Cell],
    verifications: Iterable[Verification],
) -> Matrix:
    """The matrix of documents by their evidence, and by verifications of this run that are none."""
    from finding_tickets.report.matrix import matrix
    from finding_tickets.verify.evidence import Current

    by_ticket: dict[str, list[Verification]] = {}
    for each in verifications:
        by_ticket.setdefault(each.ticket, []).append(each)
    known: dict[str, Mapping[Cell, Current] | None] = {}
    for document in documents:
        here = by_ticket.get(document.id.value, ())
        now = {cell: Current(each.verdict, each) for cell in cells for each in here if cell.has(each)}
        recorded = _known(document, settings, cells)
        known[document.id.value] = None if recorded is None else {**recorded, **now}
    return matrix(cells, known)


def show(made: Matrix) -> None:
    """Print the cells, documents by cells, and one line for each difference."""
    numbers = [str(number) for number, _ in enumerate(made.names, 1)]
    write_table(("CELL", "MEASURED WITH"), zip(numbers, made.names, strict=True))
    write("")
    write_table(("TICKET", *numbers), [(line.id, *line.words) for line in made.lines])
    write("\n".join(["", made.summary, *(difference.text for difference in made.differences)]))


def _known(document: Document, settings: Settings, cells: Sequence[Cell]) -> Mapping[Cell, Current] | None:
    """What is recorded in each cell; None where it cannot be read."""
    from finding_tickets.verify.evidence import in_cells

    try:
        return in_cells(document, settings.root, settings.evidence, cells)
    except BadDataError as error:
        say(str(error))
        return None


def _is_wanted(known: Mapping[Cell, Current] | None, cell: Cell) -> bool:
    """Whether to measure a document in a cell, of which nothing may be known or asked for."""
    return known is None or known[cell].verdict in _TO_MEASURE
