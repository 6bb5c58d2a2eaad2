"""A document on a terminal: its text rendered, its relations, and what was measured for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from finding_tickets.register.answers import answer_to
from finding_tickets.report.entries import Entry
from finding_tickets.report.page import claimed, verdict_of
from finding_tickets.report.relatives import Relative
from finding_tickets.report.terminal.prose import Prose
from finding_tickets.report.terminal.verification import INDENT, CodeAt, Measured, table, verdict_text

LEFT_OUT = ("Remediation",)
"""Sections that the verification shows with what came of them."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """All of a document, ``text`` being that of its file; the verdict comes last, above the prompt."""

    entry: Entry = field(kw_only=False)
    text: str
    relatives: Sequence[Relative]
    code_at: CodeAt
    history: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The document between two lines, what belongs to it, and what was measured."""
        entry = self.entry
        yield Text(f"{entry.id}: {entry.document.title.value}", style="bold")
        yield _standing(entry)
        yield Rule(style="dim")
        yield Prose(self.text, without=LEFT_OUT)
        yield Rule(style="dim")
        for title, content in _sections(entry, self.relatives):
            yield Text(title, style="bold underline")
            yield Padding(content, (0, 0, 1, INDENT))
        if self.history:
            yield Text("\n".join([*self.history, ""]))
        if entry.verification:
            yield Measured(entry.verification, self.code_at)


def _standing(entry: Entry) -> Text:
    """What was decided and what was measured, in one line."""
    decided = dict.fromkeys(str(word) for word in (entry.severity, entry.status, entry.outcome) if word)
    words = [*map(Text, decided), verdict_text(entry.verdict, verdict_of(entry))]
    return Text(" · ").join([*words, Text(entry.document.path, style="dim")])


def _sections(entry: Entry, relatives: Sequence[Relative]) -> Iterator[tuple[str, RenderableType]]:
    if relatives:
        header = ("ticket", "relation", "status", "verdict", "title")
        yield "Related", table(header, map(_relation, relatives))
    remediation = entry.document.remediation
    if remediation is None:
        return
    answers = [(item, answer_to(item.text, remediation)) for item in entry.document.checklist]
    rows = [
        ("[x]" if item.done else "[ ]", item.text, ", ".join(answer.claims) or answer.why or "")
        for item, answer in answers
        if answer
    ]
    if rows:
        yield "Checklist", table(("", "item", "answered by"), rows)
    for title, lines in claimed(remediation, entry):
        if lines:
            yield title, Text("\n".join(lines))


def _relation(other: Relative) -> tuple[str, ...]:
    row = other.row
    title = row.title if row else "not in the register"
    said = f"{title} ({other.note})" if other.note else title
    return other.id, other.relationship, (row.status if row else None) or "", other.verdict or "", said
