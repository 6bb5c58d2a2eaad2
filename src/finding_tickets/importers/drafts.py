"""Tickets about findings of other tools: all of their text is data, none of it Markdown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath

from finding_tickets.errors import BadDataError
from finding_tickets.importers.sarif import DIGITS, MARK, UNNAMED, SarifFinding, Spot
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.config import folders_of
from finding_tickets.register.files import RawProblem, markdown_files, read_file
from finding_tickets.register.new import Draft, Place

LONGEST_TITLE = 100
LONGEST_LINE = 300
LONGEST_TEXT = 4000
MOST_PLACES = 20
UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
CUT = "\N{HORIZONTAL ELLIPSIS}"

_FINGERPRINT = re.compile(
    rb"(?<!\w)(?:%b|report:)[0-9a-f]{%d}(?!\w)" % (MARK.encode(), DIGITS)
)
# Other names could be read as several files, or as something else.
_PLAIN_PATH = re.compile(r"[\w.+@()-][\w.+@()/ -]*")
_LIKE_AN_ID = re.compile(r"[\W_]*[^\W_]\S*-\d")
_PLAIN_SYMBOL = re.compile(r"(?a)[A-Za-z_][\w.:]*(?:\(\))?")
_LINE_END = re.compile(r"\r\n|\r|\n")
_MARKUP = frozenset("\\*_[]<>&|~$#!@{}^")
_BLOCK = re.compile(r"[-+=:]+|\d+[.)]")
_COMPARED = re.compile(r"[<>]=?|->|=>|&")
_CODE_OR_WORD = re.compile(r"`[^`]+`|[^\s`]+")
_WITHOUT_PUNCTUATION = re.compile(r"(?s)^([\"']*)(.+?)([\"'.,;:?]*)$")


def draft_of_finding(
    found: SarifFinding, batch: int | None, agent: str | None
) -> Draft:
    """Return the content of a ticket about a finding, with the batch and agent for its ID."""
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
        description=_description(found, tool),
        recommended_fix="",
        locations=tuple(places(found.spots)),
        checklist=(f"{tool} does not report it any more",),
    )


def reported_by(*parts: str) -> str:
    """Return the tool and its rule, or the report and its heading, for a cell of a table."""
    return words(" ".join(filter(None, parts)), LONGEST_LINE)


def imported_findings(root: Path) -> Mapping[str, str]:
    """Return the file of each fingerprint in a register, whatever people made of the ticket.

    Raises:
        BadDataError: A file cannot be read, so it is not known which findings it is about.
    """
    found: dict[str, str] = {}
    problems: list[RawProblem] = []
    config, folders = folders_of(root)
    for file in markdown_files(root, folders, problems, largest=config.largest_file):
        for match in _FINGERPRINT.findall(read_file(file, problems) or b""):
            found.setdefault(match.decode(), file.path)
    for problem in problems:
        if problem["level"] == Level.ERROR:
            message = f"{problem['message']}, so that it is not known which findings it is about"
            raise BadDataError(message, file=problem["file"])
    return found


def _description(found: SarifFinding, tool: str) -> str:
    said = f"Reported by {tool}"
    if found.rule:
        said += f", rule {words(found.rule, LONGEST_LINE)}"
    spots = [spot for spot in found.spots[:MOST_PLACES] if str(spot)]
    if spots:
        said += f", at {', '.join(words(str(spot), LONGEST_LINE) for spot in spots)}"
    pieces = [paragraphs(found.text, LONGEST_TEXT), f"{said}."]
    for uri in dict.fromkeys(spot.uri for spot in spots if not spot.path):
        pieces.append(f"{words(uri, LONGEST_LINE)} is no path within this repository.")
    if found.about != found.text:
        pieces.append(paragraphs(found.about, LONGEST_TEXT))
    return "\n\n".join(pieces)


def places(spots: Iterable[Spot]) -> Iterator[Place]:
    """Yield the files within the repository that a location can name, each with its lines."""
    by_path: dict[str, list[Spot]] = defaultdict(list)
    for spot in spots:
        if spot.path and _PLAIN_PATH.fullmatch(spot.path):
            by_path[spot.path].append(spot)
    for path, same in islice(by_path.items(), MOST_PLACES):
        lines = tuple(dict.fromkeys(spot.lines for spot in same if spot.lines))
        symbol = same[0].symbol if _PLAIN_SYMBOL.fullmatch(same[0].symbol) else None
        # Behind a name without an extension, a line would be read as a part of it.
        yield Place(
            file=path, lines=lines if PurePosixPath(path).suffix else (), symbol=symbol
        )


def words(text: str, longest: int) -> str:
    """Return ``text`` on one line, cut after ``longest`` characters; a word with markup in it becomes code.

    Code spans stay, and a lone backtick goes.
    """
    # Of a text of megabytes, what comes much later is not even looked at.
    line = " ".join(text[: longest * 2].split())
    kept = "".join(
        char if char.isprintable() else UNPRINTABLE for char in line[:longest]
    ).rstrip()
    shown: list[str] = []
    for piece in _CODE_OR_WORD.findall(kept):
        word = piece.strip("` ")
        if piece.startswith("`"):
            shown += [f"`{word}`"] if word else []
            continue
        is_compared = _COMPARED.fullmatch(word)
        # The first word of a text can also begin a block.
        if (is_compared or _MARKUP.isdisjoint(word)) and (
            shown or not (is_compared or _BLOCK.fullmatch(word))
        ):
            shown.append(word)
        else:
            shown.append(_WITHOUT_PUNCTUATION.sub(r"\1`\2`\3", word))
    return " ".join(shown) + (CUT if len(kept) < len(line) else "")


def paragraphs(text: str, longest: int) -> str:
    """Return ``text`` with its lines, cut behind ``longest``; an empty line begins a new paragraph."""
    lines = [words(line, longest) for line in _LINE_END.split(text[:longest])]
    shown = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    return shown + (CUT if len(text) > longest else "")
