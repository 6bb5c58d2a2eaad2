"""Where a finding was first reported: ``Report file`` and ``Section`` in pairs, or a list of report files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from finding_tickets.documents.entries import Entry, entries, text_of
from finding_tickets.documents.inline import code_spans, plain
from finding_tickets.documents.parts import Part
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import ReportLink

_FILE_KEYS = frozenset(["reportfile", "report", "file", "source", "sourcereport", "originalreport"])
_BARE = re.compile(r"reportfiles?|section")
_LIST_KEY = "reportfiles"
_SECTION = re.compile(r"\s*section\s*:\s*", re.IGNORECASE)


def read_reports(part: Part) -> tuple[ReportLink, ...]:
    """The reports that an appendix names, in its order."""
    return (*_labelled(part), *_listed(part)) or tuple(_mentioned(part))


def _labelled(part: Part) -> Iterator[ReportLink]:
    found = list(entries(part.source, part.blocks, _BARE))
    for index, entry in enumerate(found):
        if entry.key in _FILE_KEYS:
            after = found[index + 1] if index + 1 < len(found) else None
            yield _link(part, entry, after if after and after.key in ("section", "sections") else None)


def _link(part: Part, file: Entry, section: Entry | None) -> ReportLink:
    end = section.value.span.end if section else file.value.span.end
    text = part.source.text(file.value.span.start, end)
    return ReportLink(raw=text.raw, span=text.span, file=file.plain, section=section.plain if section else "")


def _listed(part: Part) -> Iterator[ReportLink]:
    """The list below ``**Report files:**``: a file in backticks, then its section."""
    if all(entry.key != _LIST_KEY for entry in part.entries):
        return
    announced = False
    for block in part.blocks:
        if announced and block.kind == "List":
            yield from (_item(part, part.source.text(*text_of(item))) for item in block.children)
        announced = any(entry.key == _LIST_KEY for entry in entries(part.source, [block]))


def _mentioned(part: Part) -> Iterator[ReportLink]:
    """Without any label, the Markdown files in backticks."""
    for start, end in code_spans(part.source.data, part.start, part.end):
        text = part.source.text(start, end)
        if text.raw.endswith(".md"):
            yield ReportLink(raw=text.raw, span=text.span, file=text.raw, section="")


def _item(part: Part, text: Text) -> ReportLink:
    spans = code_spans(part.source.data, text.span.start, text.span.end)
    words = plain(text.raw)
    file = part.source.raw(*spans[0]) if spans else words.partition(" ")[0]
    section = _SECTION.sub("", words.removeprefix(file), count=1).strip()
    return ReportLink(raw=text.raw, span=text.span, file=file, section=section)
