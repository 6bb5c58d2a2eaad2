"""Whole documents as text: the decision and the measurement, the Markdown and history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finding_tickets.model.vocabulary import Verdict
from finding_tickets.report.text import (
    COLOURS,
    Styler,
    TextSection,
    printable,
    section_lines,
)
from finding_tickets.report.verification import (
    brief_reason,
    change_section,
    verification_lines,
)

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.register.entries import Entry
    from finding_tickets.register.load import Register
    from finding_tickets.register.staleness import CurrentVerdict


@dataclass(frozen=True, slots=True)
class MeasuredDocument:
    """One document whole, and what was measured of it."""

    document: Document
    measured: CurrentVerdict

    @property
    def id(self) -> str:
        """The document's ID, as it is written there."""
        return self.document.id.value

    @property
    def verdict_text(self) -> str:
        """The verdict, why it is stale, and what other meters say where they disagree."""
        text = str(self.measured.verdict)
        if self.measured.changed:
            text += (
                f" (changed since it was measured: {', '.join(self.measured.changed)})"
            )
        if self.measured.disagreement:
            text += f" (meters disagree: {self.measured.disagreement})"
        return text


def measured_documents(
    facts: Register, rows: Iterable[Entry]
) -> Iterator[MeasuredDocument]:
    """Yield the documents of rows with their verdicts, each read when it is asked for."""
    for row in rows:
        yield MeasuredDocument(facts.document(row), facts.measured(row))


def document_text(
    facts: Register,
    entry: MeasuredDocument,
    style: Styler,
    width: int = 0,
    history: Sequence[str] = (),
) -> str:
    """Return the text that ``show`` prints of a document.

    First comes what was decided and measured, then the Markdown unless its file is gone, then the
    verification and the history.
    """
    from finding_tickets.register.disposition import disposition_text
    from finding_tickets.register.entries import entry_of

    row, done = entry_of(entry.document), entry.measured.verification
    is_stale = entry.measured.verdict is Verdict.STALE
    said = (
        f"{entry.verdict_text}: {brief_reason(done)}"
        if done and not is_stale
        else entry.verdict_text
    )
    decided = [word for word in (row.severity, disposition_text(row), row.path) if word]
    head = [
        style(printable(f"{entry.id}: {row.title}"), "bold"),
        printable(" · ".join(decided)),
    ]
    head.append(style(printable(said), COLOURS.get(entry.measured.verdict, "red")))
    if done:
        head += section_lines(change_section(done), style, width)
    blocks = ["\n".join(head)]
    with suppress(OSError):
        text = (facts.root / row.path).read_bytes().decode(errors="replace")
        blocks.append(printable(text.replace("\r\n", "\n").strip("\n")))
    remediation = entry.document.remediation
    if remediation and remediation.path != row.path:
        section = TextSection("Remediation", [(f"in {remediation.path}",)])
        blocks.append("\n".join(section_lines(section, style, width)))
    if done:
        blocks.append("\n".join(verification_lines(done, style, width)))
    if history:
        lines = [(line,) for line in history]
        blocks.append(
            "\n".join(section_lines(TextSection("History", lines), style, width))
        )
    return "\n\n".join(blocks)
