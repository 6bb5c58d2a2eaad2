"""The forms in which cross-reviews are written; each yields the pieces of a review where it finds one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from finding_tickets.markdown.blocks import Block
from finding_tickets.markdown.entries import Entry, entries, text_of
from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.parts import Part
from finding_tickets.markdown.review_tables import Row, evaluation_of, extent, review_rows, reviewer_of
from finding_tickets.markdown.reviewers import known_first, named_in_heading, opinion_of, reviewer_word
from finding_tickets.markdown.source import Source
from finding_tickets.model.record import Text

_EVALUATION = "evaluation"
_ITEM = re.compile(rb"(?P<who>[^:\r\n]+?)(?::|\xe2\x80\x94| - )\W*(?P<verdict>\w+)\W*(?P<why>.*)", re.DOTALL)


@dataclass(frozen=True)
class Draft:
    """The pieces of one review; ``text`` is all of it."""

    text: Text
    reviewer: Text | None
    verdict: Text
    evaluation: Text | None


def drafts(part: Part) -> Iterator[Draft]:
    """The reviews of a part and of the parts within it, in the order of the file."""
    inner = [each for each in part.parts if each.heading and not each.name.startswith(_EVALUATION)]
    end = inner[0].start if inner else part.end
    own = tuple(block for block in part.blocks if block.start < end)
    yield from _in_tables(part, own) or _labelled(part, own) or _listed(part, own)
    for each in inner:
        yield from drafts(each)


def _in_tables(part: Part, blocks: Sequence[Block]) -> list[Draft]:
    """A table with a column of verdicts."""
    rows = [row for group in _by_table(blocks) for row in review_rows(part, group)]
    evaluations = _evaluations(part, blocks) if rows else {}
    prose, text = (_prose(part, blocks), part.body) if len(rows) == 1 else (None, None)
    return [_from_row(part, row, evaluations, text=text, prose=prose) for row in rows]


def _by_table(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Each table with the blocks that follow it, up to the next table."""
    group: list[Block] = []
    for block in blocks:
        if block.kind == "Table" and group:
            yield group
            group = []
        if block.kind == "Table" or group:
            group.append(block)
    if group:
        yield group


def _evaluations(part: Part, blocks: Sequence[Block]) -> dict[str, Text]:
    """The evaluations labelled for a reviewer, ``**DRL Evaluation:** ...``, by the register's word."""
    found = [entry for entry in entries(part.source, blocks) if entry.key.endswith(_EVALUATION)]
    by_word = {reviewer_word(entry.label, part.source.vocabulary): entry.value for entry in reversed(found)}
    return {word: text for word, text in by_word.items() if word}


def _from_row(
    part: Part, row: Row, evaluations: Mapping[str, Text], *, text: Text | None, prose: Text | None
) -> Draft:
    """The evaluation is a cell, a paragraph labelled for the reviewer, or what follows a single row."""
    vocabulary = part.source.vocabulary
    reviewer = known_first(vocabulary, reviewer_of(row), named_in_heading(part))
    word = reviewer_word(plain(reviewer.raw), vocabulary) if reviewer else None
    return Draft(
        text=text or extent(part.source, row),
        reviewer=reviewer,
        verdict=row["verdict"],
        evaluation=evaluation_of(row) or evaluations.get(word or "") or prose,
    )


def _labelled(part: Part, blocks: Sequence[Block]) -> list[Draft]:
    """A verdict as a labelled value: in a field table, in a table's header, or in a paragraph."""
    rows = {entry.key: entry for entry in reversed(list(entries(part.source, blocks)))}
    verdict = rows.get("verdict")
    if verdict is None:
        return []
    named = rows.get("reviewer") or rows.get("agent")
    evaluation = rows.get(_EVALUATION)
    vocabulary = part.source.vocabulary
    return [
        Draft(
            text=part.body,
            reviewer=known_first(vocabulary, named.value if named else None, named_in_heading(part)),
            verdict=_first_line(part.source, verdict),
            evaluation=evaluation.value if evaluation and evaluation.plain else _prose(part, blocks),
        )
    ]


def _first_line(source: Source, entry: Entry) -> Text:
    """A labelled value reaches to the next label; a verdict is its first line."""
    start = entry.value.span.start
    return source.text(start, start + len(entry.value.raw.partition("\n")[0].encode()))


def _prose(part: Part, blocks: Sequence[Block]) -> Text | None:
    """What is written below the verdict: a part headed Evaluation, or all but tables and the verdict."""
    inner = next((each for each in part.parts if each.name.startswith(_EVALUATION)), None)
    if inner:
        return inner.body if inner.body.raw else None
    kept = [each for each in blocks if each.kind not in ("Table", "Rule") and not _states_verdict(part, each)]
    return part.source.text(kept[0].start, kept[-1].end) if kept else None


def _states_verdict(part: Part, block: Block) -> bool:
    return any(entry.key == "verdict" for entry in entries(part.source, [block]))


def _listed(part: Part, blocks: Sequence[Block]) -> list[Draft]:
    """List items: ``- **DRL**: ENDORSE - the reason``."""
    items = [item for block in blocks if block.kind == "List" for item in block.children]
    return [draft for item in items if (draft := _from_item(part.source, item))]


def _from_item(source: Source, item: Block) -> Draft | None:
    text = source.text(*text_of(item))
    match = _ITEM.fullmatch(text.raw.encode())
    if match is None or opinion_of(match["verdict"].decode(), source.vocabulary.opinions) is None:
        return None
    who, verdict, why = (_piece(source, text, match.span(name)) for name in ("who", "verdict", "why"))
    return Draft(text=text, reviewer=who, verdict=verdict, evaluation=why if why.raw else None)


def _piece(source: Source, text: Text, span: tuple[int, int]) -> Text:
    return source.text(text.span.start + span[0], text.span.start + span[1])
