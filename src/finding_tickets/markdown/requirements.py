"""The requirements of a plan and whether a change meets them: marked list items and the table of the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from finding_tickets.markdown.blocks import Block, walk
from finding_tickets.markdown.entries import text_of
from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.parts import Part
from finding_tickets.markdown.source import Source
from finding_tickets.markdown.tables import columns, records
from finding_tickets.model.record import Text
from finding_tickets.model.review import Requirement

_MET = ("\u2705", "\u2714", "yes", "met", "done", "pass", "implemented")
_UNMET = ("\u274c", "\u2716", "no", "unmet", "missing", "fail")
_OPEN = ("\u26a0", "partial", "deferred", "n/a")


def read_requirements(parts: Iterable[Part]) -> Iterator[Requirement]:
    """The requirements in the sections that speak of a plan or of requirements."""
    for part in parts:
        if "plan" in part.name.split() or "requirements" in part.name.split():
            for block in walk(part.blocks):
                if block.kind == "Table":
                    yield from _of_table(part.source, block)
                elif block.kind == "Item":
                    yield from _of_item(part.source, block)


def _of_table(source: Source, table: Block) -> Iterator[Requirement]:
    titles = columns(source, table)
    wanted = next((title for title in titles if "requirement" in title), None)
    if wanted is None:
        return
    for row in records(source, table):
        first, last = row[titles[0]], row[titles[-1]]
        text = source.text(first.span.start, last.span.end)
        implementation, status = row.get("implementation"), row.get("status", last)
        yield Requirement(
            raw=text.raw,
            span=text.span,
            text=plain(row[wanted].raw),
            implementation=plain(implementation.raw) if implementation else "",
            met=_met(source, status),
        )


def _of_item(source: Source, item: Block) -> Iterator[Requirement]:
    text = source.text(*text_of(item))
    words = plain(text.raw)
    mark = next(
        (mark for mark in (*_MET, *_UNMET, *_OPEN) if not mark.isascii() and words.startswith(mark)), None
    )
    if mark is None and item.checked is None:
        return
    met = item.checked if mark is None else _met(source, text)
    body = words if mark is None else words[len(mark) :].lstrip("\ufe0f ")
    yield Requirement(raw=text.raw, span=text.span, text=body, implementation="", met=met)


def _met(source: Source, status: Text) -> bool | None:
    """What a status mark or word means; None where it leaves the question open."""
    words = plain(status.raw).lower()
    if words.startswith(_OPEN):
        return None
    if words.startswith(_UNMET):
        return False
    if not words.startswith(_MET):
        message = f"cannot tell from {words!r} whether it is met"
        source.report("requirement-status", status.span.start, message)
        return None
    return True
