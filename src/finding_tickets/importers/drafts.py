"""What a ticket says of a finding of another tool: all of its text is data, none of it Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from finding_tickets.documents.reading import read_document
from finding_tickets.importers.results import UNNAMED, Found, Spot
from finding_tickets.importers.words import paragraphs, words
from finding_tickets.model.vocabulary import Vocabulary, word_for
from finding_tickets.register.draft import Draft, Place

LONGEST_TITLE = 100
LONGEST_LINE = 300
LONGEST_TEXT = 4000
MOST_PLACES = 20
_PAGE = """\
# Finding Ticket: x

## Location

| Field | Value |
|---|---|
| **File(s)** | `{where}` |
"""
_PLAIN_PATH = re.compile(r"[\w.+@-]+(?:/[\w.+@-]+)*\.\w+", re.ASCII)
_LIKE_AN_ID = re.compile(r"[\W_]*[^\W_]\S*-\d")
_PLAIN_SYMBOL = re.compile(r"[A-Za-z_][\w.:]*(?:\(\))?", re.ASCII)


def draft(found: Found, batch: int | None, agent: str | None, vocabulary: Vocabulary) -> Draft:
    """The content of a ticket about a finding; ``batch`` and ``agent`` are those of its ID."""
    title = words(found.text, LONGEST_TITLE).rstrip(".") or "A finding without words"
    # Of a title that begins with the ticket's own ID, the ID is taken for a remark.
    title = f"Reported: {title}" if _LIKE_AN_ID.match(title) else title
    ticked = {word_for(tag, vocabulary.categories) for tag in found.tags}
    return Draft(
        title=title,
        severity=found.severity,
        batch=batch,
        agent=agent,
        summary=words(found.text, LONGEST_LINE) or title,
        description="\n\n".join(_description(found)),
        recommended_fix=paragraphs(found.fix, LONGEST_TEXT),
        locations=tuple(_places(found.spots, vocabulary)),
        categories=tuple(name for name in vocabulary.categories if name in ticked),
        checklist=(f"{_tool(found)} does not report it any more",),
    )


def source(found: Found) -> str:
    """The tool and its rule, for a cell of a table."""
    return words(" ".join(filter(None, (found.tool, found.rule))), LONGEST_LINE)


def _description(found: Found) -> Iterator[str]:
    yield paragraphs(found.text, LONGEST_TEXT)
    name = found.name if found.name not in found.rule else ""
    rule = f", rule {words(found.rule, LONGEST_LINE)}" if found.rule else ""
    rule += f" ({words(name, LONGEST_LINE)})" if rule and name else ""
    places = [words(str(spot), LONGEST_LINE) for spot in found.spots[:MOST_PLACES] if str(spot)]
    at = f", at {', '.join(places)}" if places else ""
    yield f"Reported by {_tool(found)}{rule}{at}."
    elsewhere = dict.fromkeys(spot.file.uri for spot in found.spots if spot.file and not spot.file.path)
    for uri in list(elsewhere)[:MOST_PLACES]:
        yield f"{words(uri, LONGEST_LINE)} is no path within this repository."
    if found.about and found.about != found.text:
        yield paragraphs(found.about, LONGEST_TEXT)
    if found.link:
        yield f"More about the rule: {words(found.link, LONGEST_LINE)}"
    related = [each for each in found.related if str(each)][:MOST_PLACES]
    if related:
        yield "Related places:"
        yield "\n".join(f"- {_related(each)}" for each in related)


def _tool(found: Found) -> str:
    return words(" ".join(filter(None, (found.tool, found.version))), LONGEST_LINE) or UNNAMED


def _related(spot: Spot) -> str:
    text = words(spot.text, LONGEST_LINE)
    return words(str(spot), LONGEST_LINE) + (f": {text}" if text else "")


def _places(spots: Sequence[Spot], vocabulary: Vocabulary) -> Iterator[Place]:
    """The files within the repository, as far as a location can name them, each with its lines."""
    lines: dict[str, list[tuple[int, int]]] = {}
    symbols: dict[str, str | None] = {}
    for spot in spots:
        if spot.file and spot.file.path and " ".join(spot.file.path.split()) == spot.file.path:
            ranges = lines.setdefault(spot.file.path, [])
            ranges += [spot.lines] if spot.lines and spot.lines not in ranges else []
            symbols.setdefault(spot.file.path, spot.symbol)
    for path, ranges in list(lines.items())[:MOST_PLACES]:
        symbol = symbols[path]
        symbol = symbol if symbol and _PLAIN_SYMBOL.fullmatch(symbol) else None
        written = (Place(file=path, lines=each, symbol=symbol) for each in (tuple(ranges), ()))
        yield from islice((place for place in written if _is_read_back(place, vocabulary)), 1)


def _is_read_back(place: Place, vocabulary: Vocabulary) -> bool:
    """Whether a location that names this place is understood as that, whatever is in the file's name."""
    if _PLAIN_PATH.fullmatch(place.file):
        return True
    text = _PAGE.format(where=place.where.replace("\\", "\\\\").replace("|", "\\|"))
    document, _ = read_document(text.encode(), "x.md", vocabulary)
    read = document.locations if document else ()
    return [(place.file, place.lines)] == [
        (each.file, tuple((lines.first, lines.last) for lines in each.lines)) for each in read
    ]
