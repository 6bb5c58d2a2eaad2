"""Where a finding was first reported: pairs of ``Report file`` and ``Section``."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.markdown.entries import Entry, entries
from finding_tickets.markdown.parts import Part
from finding_tickets.model.ticket import ReportLink

_FILE_KEYS = frozenset(["reportfile", "report", "file"])


def read_reports(part: Part) -> tuple[ReportLink, ...]:
    """The reports that an appendix names, in its order."""
    return tuple(_links(part))


def _links(part: Part) -> Iterator[ReportLink]:
    found = list(entries(part.source, part.blocks))
    for index, entry in enumerate(found):
        if entry.key in _FILE_KEYS:
            after = found[index + 1] if index + 1 < len(found) else None
            section = after if after and after.key == "section" else None
            yield _link(part, entry, section)


def _link(part: Part, file: Entry, section: Entry | None) -> ReportLink:
    end = section.value.span.end if section else file.value.span.end
    text = part.source.text(file.value.span.start, end)
    return ReportLink(raw=text.raw, span=text.span, file=file.plain, section=section.plain if section else "")
