"""The requirements of a plan and whether a change meets them: marked list items and the table of the plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from finding_tickets.documents.blocks import Block, walk
from finding_tickets.documents.entries import text_of
from finding_tickets.documents.inline import plain
from finding_tickets.documents.parts import Part
from finding_tickets.documents.source import Source
from finding_tickets.documents.tables import table_of
from finding_tickets.model.record import Text
from finding_tickets.model.review import Requirement

_SECTION = re.compile(r".*\b(?:plan|requirements?|compliance|specification|spec|acceptance)\b.*")
_REQUIREMENT = re.compile(r".*\brequirements?\b.*")
_IN_A_PLAN = re.compile(
    r".*\b(?:requirements?|task|step|item|deliverable|criteri(?:on|a)|planned|plan|spec)\b.*"
)
_STATUS = re.compile(
    r"status|met\??|result|compliance|compliant\??|complete\??|implemented\??|done\??|verdict"
)
_IMPLEMENTATION = re.compile(
    r"(?:actual )?implementation|evidence|notes?|details?|location|how|where|actual|comments?"
)
_MET = re.compile(
    r"[\u2705\u2714\u2713\u2611\U0001f7e2]|(?:yes|y|met|done|pass(?:ed)?|implemented|complete[d]?|satisfied|fully|correct"
    r"|ok|true|verified|added|exceeded|compliant)\b"
)
_UNMET = re.compile(
    r"[\u274c\u2716\u2717\u2718\u2612\U0001f534]|(?:no|n|not|unmet|missing|fail(?:ed)?|absent|incorrect|false)\b(?!/)"
)
_OPEN = re.compile(
    r"[\u26a0\U0001f7e1\u23f3\U0001f536]"
    r"|(?:partial\w*|partly|deferred|n/a|pending|skipped|optional|tbd|in progress)\b"
    r"|[-\u2013\u2014]?$"
)
_SIGN = re.compile(r"(?P<sign>[^\w\s*`(\[\"'-]\ufe0f?)\s*(?P<text>.*)", re.DOTALL)


def read_requirements(parts: Iterable[Part]) -> Iterator[Requirement]:
    """The requirements in the sections that speak of a plan or of requirements, and in tables of them."""
    for part in parts:
        planned = _SECTION.fullmatch(part.name) is not None
        for block in walk(part.blocks, rows=False):
            if block.kind == "Table":
                yield from _of_table(part.source, block, _IN_A_PLAN if planned else _REQUIREMENT)
            elif block.kind == "Item" and planned:
                yield from _of_item(part.source, block)


def _of_table(source: Source, block: Block, wanted: re.Pattern[str]) -> Iterator[Requirement]:
    table = table_of(source, block)
    titles = table.titles
    requirement = _pick(titles, _REQUIREMENT) or _pick(titles, wanted)
    others = [title for title in titles if title != requirement]
    status = _pick(others, _STATUS)
    if requirement is None or not others or (status is None and wanted is not _IN_A_PLAN):
        return
    if status is None and not any(_is_status(row[others[-1]]) for row in table.records):
        return
    implementation = _pick([title for title in others if title != status], _IMPLEMENTATION)
    for row in table.records:
        text = source.text(row[titles[0]].span.start, row[titles[-1]].span.end)
        yield Requirement(
            raw=text.raw,
            span=text.span,
            text=plain(row[requirement].raw),
            implementation=plain(row[implementation].raw) if implementation else "",
            met=_met(source, row[status or others[-1]]),
        )


def _pick(titles: Sequence[str], pattern: re.Pattern[str]) -> str | None:
    return next((title for title in titles if pattern.fullmatch(title)), None)


def _of_item(source: Source, item: Block) -> Iterator[Requirement]:
    text = source.text(*text_of(item))
    words = plain(text.raw)
    sign = _SIGN.match(words)
    mark = sign["sign"] if sign and _is_mark(sign["sign"]) else None
    if mark is None and item.checked is None:
        return
    met = item.checked if mark is None else _meaning(words.lower())
    body = words if mark is None or sign is None else sign["text"]
    yield Requirement(raw=text.raw, span=text.span, text=body, implementation="", met=met)


def _is_mark(sign: str) -> bool:
    return any(pattern.match(sign) for pattern in (_MET, _UNMET)) or _OPEN.match(sign) is not None


def _is_status(cell: Text) -> bool:
    words = plain(cell.raw).lower()
    return bool(words) and any(pattern.match(words) for pattern in (_OPEN, _UNMET, _MET))


def _met(source: Source, status: Text) -> bool | None:
    """What a status mark or word means; None where it leaves the question open."""
    words = plain(status.raw).lower()
    if not any(pattern.match(words) for pattern in (_OPEN, _UNMET, _MET)):
        message = f"cannot tell from {words!r} whether it is met"
        source.report("requirement-status", status.span.start, message)
    return _meaning(words)


def _meaning(words: str) -> bool | None:
    if _OPEN.match(words):
        return None
    if _UNMET.match(words):
        return False
    return True if _MET.match(words) else None
