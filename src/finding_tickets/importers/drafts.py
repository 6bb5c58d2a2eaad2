"""Tickets about findings of other tools: all of their text is data, none of it Markdown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from finding_tickets.documents.reading import read_document
from finding_tickets.errors import BadDataError
from finding_tickets.importers.sarif import DIGITS, MARK, UNNAMED, SarifFinding, Spot
from finding_tickets.model.ticket import LineRange
from finding_tickets.model.vocabulary import Level, Vocabulary
from finding_tickets.register.config import folders_of
from finding_tickets.register.files import RawProblem, markdown_files, read_file
from finding_tickets.register.new import Draft, Place

LONGEST_TITLE = 100
LONGEST_LINE = 300
LONGEST_TEXT = 4000
MOST_PLACES = 20
UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
CUT = "\N{HORIZONTAL ELLIPSIS}"

_PAGE = """\
# Finding Ticket: x

## Location

| Field | Value |
|---|---|
| **File(s)** | `{where}` |
"""
_FINGERPRINT = re.compile(rb"(?<!\w)(?:%b|report:)[0-9a-f]{%d}(?!\w)" % (MARK.encode(), DIGITS))
_PLAIN_PATH = re.compile(r"[\w.+@-]+(?:/[\w.+@-]+)*\.\w+", re.ASCII)
_LIKE_AN_ID = re.compile(r"[\W_]*[^\W_]\S*-\d")
_PLAIN_SYMBOL = re.compile(r"[A-Za-z_][\w.:]*(?:\(\))?", re.ASCII)
_LINE_END = re.compile(r"\r\n|\r|\n")
_MARKUP = frozenset("\\*_[]<>&|~$#!@{}^")
_BLOCK = re.compile(r"[-+=:]+|\d+[.)]")
_COMPARED = re.compile(r"[<>]=?|->|=>|&")
_CODE = re.compile(r"`([^`]+)`")
_WORD = re.compile(r"(?P<before>[\"']*)(?P<word>.*?)(?P<after>[\"'.,;:?]*)", re.DOTALL)


def draft_of_finding(
    found: SarifFinding, batch: int | None, agent: str | None, vocabulary: Vocabulary
) -> Draft:
    """The content of a ticket about a finding; ``batch`` and ``agent`` are those of its ID."""
    title = words(found.text, LONGEST_TITLE).rstrip(".") or "A finding without words"
    # Of a title that begins with the ticket's own ID, the ID is taken for a remark.
    title = f"Reported: {title}" if _LIKE_AN_ID.match(title) else title
    tool = words(found.tool, LONGEST_LINE) or UNNAMED
    return Draft(
        title=title,
        severity=found.severity,
        batch=batch,
        agent=agent,
        summary=words(found.text, LONGEST_LINE) or title,
        description="\n\n".join(_description(found, tool)),
        recommended_fix="",
        locations=tuple(places(found.spots, vocabulary)),
        checklist=(f"{tool} does not report it any more",),
    )


def reported_by(*parts: str) -> str:
    """The tool and its rule, or the report and its heading, for a cell of a table."""
    return words(" ".join(filter(None, parts)), LONGEST_LINE)


def imported_findings(root: Path) -> Mapping[str, str]:
    """The file of each fingerprint in a register, found by its text, whatever people made of the ticket.

    Raises:
        BadDataError: A file cannot be read, so it is not known which findings it is about.
    """
    found: dict[str, str] = {}
    problems: list[RawProblem] = []
    config, folders = folders_of(root)
    for file in markdown_files(root, folders, problems, largest=config.largest_file):
        content = read_file(file, problems)
        for match in _FINGERPRINT.findall(content or b""):
            found.setdefault(match.decode(), file.path)
    for problem in problems:
        if problem["level"] == Level.ERROR:
            message = f"{problem['message']}, so that it is not known which findings it is about"
            raise BadDataError(message, file=problem["file"])
    return found


def _description(found: SarifFinding, tool: str) -> Iterator[str]:
    yield paragraphs(found.text, LONGEST_TEXT)
    rule = f", rule {words(found.rule, LONGEST_LINE)}" if found.rule else ""
    where = [words(str(spot), LONGEST_LINE) for spot in found.spots[:MOST_PLACES] if str(spot)]
    at = f", at {', '.join(where)}" if where else ""
    yield f"Reported by {tool}{rule}{at}."
    elsewhere = dict.fromkeys(spot.uri for spot in found.spots if spot.uri and not spot.path)
    for uri in list(elsewhere)[:MOST_PLACES]:
        yield f"{words(uri, LONGEST_LINE)} is no path within this repository."
    if found.about and found.about != found.text:
        yield paragraphs(found.about, LONGEST_TEXT)


def places(spots: Iterable[Spot], vocabulary: Vocabulary) -> Iterator[Place]:
    """The files within the repository, as far as a location can name them, each with its lines."""
    by_path: dict[str, list[Spot]] = defaultdict(list)
    for spot in spots:
        if spot.path and " ".join(spot.path.split()) == spot.path:
            by_path[spot.path].append(spot)
    for path, same in islice(by_path.items(), MOST_PLACES):
        lines = tuple(dict.fromkeys(spot.lines for spot in same if spot.lines))
        symbol = same[0].symbol if _PLAIN_SYMBOL.fullmatch(same[0].symbol or "") else None
        # A name may be such that it is understood only without its lines, or not at all.
        ways = (Place(file=path, lines=stated, symbol=symbol) for stated in (lines, ()))
        yield from islice((place for place in ways if _is_understood(place, vocabulary)), 1)


def _is_understood(place: Place, vocabulary: Vocabulary) -> bool:
    """Whether the reader takes a place, as a ticket has it, for what it is."""
    if _PLAIN_PATH.fullmatch(place.file):
        return True
    text = _PAGE.format(where=place.where.replace("\\", "\\\\").replace("|", "\\|"))
    document = read_document(text.encode(), "x.md", vocabulary)[0]
    read = [(each.file, each.lines) for each in document.locations] if document else []
    return read == [(place.file, tuple(LineRange(first=one, last=other) for one, other in place.lines))]


def words(text: str, longest: int) -> str:
    """``text`` on one line, cut after ``longest`` characters; a word with markup in it becomes code.

    Code spans stay, and a lone backtick goes.
    """
    # Of a text of megabytes, what comes much later is not even looked at.
    line = " ".join(text[: longest * 2].split())
    kept = "".join(char if char.isprintable() else UNPRINTABLE for char in line[:longest]).rstrip()
    shown: list[str] = []
    for at, piece in enumerate(_CODE.split(kept)):
        if at % 2:
            shown += [f"`{piece.strip()}`"] if piece.strip() else []
            continue
        for word in piece.replace("`", "").split():
            # Only the first word can begin a block; behind it, a sign that stands alone is no markup.
            is_sign = shown and _COMPARED.fullmatch(word)
            is_plain = _MARKUP.isdisjoint(word) and (shown or not _BLOCK.fullmatch(word))
            parts = _WORD.fullmatch(word)
            if is_sign or is_plain:
                shown.append(word)
            elif parts and parts["word"]:
                shown.append(f"{parts['before']}`{parts['word']}`{parts['after']}")
            else:
                shown.append(f"`{word}`")
    return " ".join(shown) + (CUT if len(kept) < len(line) else "")


def paragraphs(text: str, longest: int) -> str:
    """``text`` with its lines, cut behind ``longest`` characters; an empty line begins a new paragraph."""
    lines = [words(line, longest) for line in _LINE_END.split(text[:longest])]
    shown = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    return shown + (CUT if len(text) > longest else "")
