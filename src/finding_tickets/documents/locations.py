"""Places in code, as location sections, text and code blocks name them: ``src/a.py:10-20, 31``, ``A.f()``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import PurePosixPath

from finding_tickets.documents.metadata import (
    FILES,
    LINES,
    PLACES,
    SYMBOLS,
    LabelledValue,
    labelled_values,
    listed,
)
from finding_tickets.documents.sections import DocumentPart
from finding_tickets.documents.source import Excerpt, Values, code_spans, walk

Lines = tuple[Values, ...]

# Extensions that no attribute of an object is likely to be called: ``self.lock``, ``console.log``.
EXTENSION = (
    r"(?:py|pyi|pyx|md|toml|ya?ml|json|cfg|ini|txt|sh|c|cc|cpp|cxx|cuh?|h|hpp|hxx|rs|go|[cm]?jsx?|[cm]?tsx?|vue"
    r"|svelte|astro|s?css|html?|ipynb|sol|vy|cairo|java|kts?|swift|rb|php|phtml|cs|cshtml|csproj|fs|vb|sql"
    r"|dart|exs?|erl|hrl|hs|scala|clj|lua|jl|zig|nim|tf|tfvars|proto|graphql|prisma|gradle|xml|ps1|cmake|svh?|vhdl?"
    r"|asm|mdx|rst|csv|jsonl|j2|ejs|hbs|erb|pas|f90|rkt|sway|yul|wgsl|glsl|hlsl|bash|zsh)"
)
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_RANGE = re.compile(
    r"(?<![\w.])L?(\d{1,9})(?:\s*(?:[-\u2013\u2014]|\.\.|\bto\b)\s*L?(\d{1,9}))?(?![\w.]*\w)"
)
_ASIDE = re.compile(r"\([^()]*\)")
_LINES_ALONE = re.compile(r"(?i)\((?:\s|[\d,;~&\u2013-]|lines?|and|L(?=\d))*\)")
_PATH_AND_LINES = re.compile(
    r"(?P<path>.+?\.\w+)(?::(?P<lines>[L\d~][\dL\s,:~\u2013-]*))?"
)
_FILE = re.compile(rf"[^\s()]+\.{EXTENSION}|[^\s()]+/[^\s()]*")
_FILE_IN_PROSE = re.compile(
    rf"(?<![^\s(`])[^\s()`,;:]+(?:\.{EXTENSION}\b|/(?=[\s,;)`]|$))(?:(?::|#(?=L))[L\d][\dL,\u2013-]*(?<![,-]))?"
)
_IN_CODE = re.compile(r"(?<!`)`(?P<code>[^`\r\n]+)`")
_NAME = re.compile(
    r"(?:(?:async )?def |class )?([A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)*)(?:\(\))?"
)
_LOOKS_LIKE_CODE = re.compile(r"[._(]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_ARGUMENTS = re.compile(r"\([^()]*\)")
_BETWEEN_NAMES = re.compile(r"\s*(?:[,;&+/]|\band\b)\s*")
_FIRST_COMMENT = re.compile(
    r"\s*(?:#|//|--)\s*(?P<place>[\w./\\-]+\.\w+(?::[\d,\s-]*\d)?)"
)
_LINE = re.compile(rb"[^\r\n]+")
_COMMENT = re.compile(rb"[ \t]*(?:#+|//|--|;|<!--)[ \t]*")
_COMMENT_END = b"-->"
_BLANK = b" \t"
_FILE_BEFORE = re.compile(
    rf"(?s)(?<![\w./\\-])(?P<path>[\w./\\-]+\.{EXTENSION})\b(?P<behind>.*)"
)
# Lines behind a file: ``: 10-20``, ``(lines 10-20)``, ``, line 5``, ``L3-L9``, ``lines: 3`` of a mapping.
_COLON_LINES = re.compile(r"\s*:\s*(?P<lines>~?L?\d[\dL,\s\u2013-]*)")
_SAID = (
    r"(?i:\blines?\b[:\s\"'\[]*|(?<![\w.])L(?=\d+\s*(?:[-,;)\]`\u2013]|$)))"
    r"(?P<lines>~?\d(?:[\dL,\s\u2013-]|(?:and|to)\s(?=\d))*)"
)
_LINES_SAID = re.compile(_SAID)
_LINES_OF_SPAN = re.compile(rf"`?[^`.;#\[\]\r\n]{{0,60}}?{_SAID}")
_LANGUAGE_END = re.compile(r"[\s:{]")
# A place stands near the beginning of a comment; a line of a megabyte is not searched for one.
_LONGEST_COMMENT = 300

# A link to lines of a file at a revision.
_BLOB = re.compile(
    r"https?://[^\s()]+?/(?:blob|tree|src)/[^/\s]+/(?P<path>[^\s()#?]+)(?:#L?(?P<lines>\d+(?:-L?\d+)?))?"
)
_LINK = re.compile(r"\[`?([^\[\]`]+)`?\]\([^()\s]*?(?:[:#]L?(\d+(?:-L?\d+)?))?\)")
_LINES_BY_HASH = re.compile(
    r"(?<=\.\w)#(?=L\d)|(?<=\.\w\w)#(?=L\d)|(?<=\.\w\w\w)#(?=L\d)"
)
_MORE_LINES = re.compile(r"[\s,]*[\dL][\dL\s,\u2013-]*")
# In running text: a link to lines, code that is a path, or a path with an extension of code.
_CITED = re.compile(
    rf"(?P<named>\[`?[\w/.+-]{{1,300}}\.{EXTENSION}`?\]\((?:file:)?/[^()\s]{{1,300}}#L\d+(?:-L?\d+)?\))"
    rf"|\]\((?:\.\.?/)+(?P<relative>[\w/.-]{{1,300}}\.{EXTENSION}(?:#L\d+(?:-L?\d+)?)?)\)"
    rf"|(?P<link>https?://[^\s()]{{1,300}}/blob/[^\s()]+)|`(?P<code>(?:[\w./@+-]{{1,300}}\.{EXTENSION}|[\w.@+-]{{1,99}}/[\w./@+-]{{1,300}}\.[A-Za-z]\w{{0,9}})\b(?!\()[^`\s]*)"
    rf"|(?<![^\s(\[\"'])(?P<path>[\w./-]{{1,300}}\.{EXTENSION}\b(?::L?\d+(?:-L?\d+)?)?)(?![\w`])"
)
# A text that cites more is no text for people.
_MOST_CITED = 200
_FILE_THEN_LINES = re.compile(rf"(?<![\w./\\-])([\w./\\-]+\.{EXTENSION})\b\s*:?")
_NOWHERE = re.compile(
    r"(?i)\W*(?:n/?a\b|20\d\d-|none\b|multiple\b|various\b|several\b|many\b|all\b|tb[da]\b|unknown\b"
    r"|not applicable\b|$)"
)
_NO_LINES = re.compile(
    r"(?i)\W*(?:(?:the )?(?:entire|whole|full)\b|throughout\b|missing\b|new\b|module\b|file\b|class\b|see\b)",
)


def line_ranges(text: str) -> Lines:
    """The lines in ``text``, two in ``177-178, 189 (2 calls)``. Brackets count if they hold only lines."""
    if not text:
        return ()
    bare = _ASIDE.sub(
        lambda match: match[0] if _LINES_ALONE.fullmatch(match[0]) else " ",
        _DATE.sub("", text),
    )
    numbers = [
        (int(match[1]), int(match[2] or match[1])) for match in _RANGE.finditer(bare)
    ]
    # A link may say them in its text and in its address.
    return tuple(
        {"first": first, "last": max(first, last)}
        for first, last in dict.fromkeys(numbers)
    )


def _lines_said(text: str) -> Lines:
    """Return the lines that a text behind a file says."""
    match = _COLON_LINES.match(text) or _LINES_SAID.search(text)
    return line_ranges(match["lines"]) if match else ()


def _path_and_lines(text: str) -> tuple[str, Lines]:
    """Return a path and the lines that may follow it after a colon, without remarks."""
    if "#" in text or "://" in text:
        if blob := _BLOB.search(text):
            return blob["path"], line_ranges(blob["lines"] or "")
        text = _LINES_BY_HASH.sub(":", text)
    # ``[a.py](../a.py#L3)``
    text = _LINK.sub(r"\1:\2", text).rstrip(":")
    match = _PATH_AND_LINES.fullmatch(text)
    if match is None and (found := _FILE_IN_PROSE.search(text)):
        text = found[0]
        match = _PATH_AND_LINES.fullmatch(text)
    return (match["path"], line_ranges(match["lines"] or "")) if match else (text, ())


def _place(
    text: Excerpt,
    file: str | None,
    lines: Lines = (),
    symbol: str | None = None,
    written: str = "",
) -> Values:
    """The fields of a ``Location``; ``written`` are its symbols with their markup.

    Symbols stand in backticks; without any, they are the pieces of the text that look like code.
    """
    data = written.encode()
    spans = code_spans(data, 0, len(data))
    texts = [data[start:end].decode() for start, end in spans] if spans else [written]
    pieces = [
        piece
        for each in texts
        for piece in _BETWEEN_NAMES.split(_ARGUMENTS.sub("()", each).strip())
        if piece
    ]
    named = (
        _NAME.fullmatch(piece)
        for piece in pieces
        if spans or _LOOKS_LIKE_CODE.search(piece)
    )
    symbols = tuple(dict.fromkeys(name[1] for name in named if name))
    return text.record(file=file, lines=lines, symbol=symbol, symbols=symbols)


def place_of(text: Excerpt, name: str | None = None) -> list[Values]:
    """The place that ``text``, or ``name`` within it, names; none where it does not look like a path."""
    path, lines = _path_and_lines(name or text.plain)
    return [_place(text, path, lines)] if _FILE.fullmatch(path) else []


def names(name: str, path: str) -> bool:
    """Return True if ``name`` is the end of ``path``: ``ppo.py`` names ``src/agent/ppo.py``."""
    parts = PurePosixPath(name).parts
    return PurePosixPath(path).parts[-len(parts) :] == parts


def read_code(part: DocumentPart) -> Iterator[Values]:
    """Every code block of a part: its language, its content, and the places that its comments name."""
    source = part.source
    for block in part.by_kind["CodeBlock"]:
        first = _FIRST_COMMENT.match(block.code)
        location = first["place"] if first else None
        places = []
        # In a list the code is indented, and its first line begins before the block's text does.
        start = source.line_starts[source.line(block.first) - 1]
        for line in _LINE.finditer(source.data, start, block.last):
            mark = _COMMENT.match(source.data, *line.span())
            if mark is None:
                continue
            data = (
                source.data[mark.end() : line.end()]
                .rstrip(_BLANK)
                .removesuffix(_COMMENT_END)
                .rstrip(_BLANK)
            )
            words = data.decode(errors="replace")
            file = _FILE_BEFORE.search(words[:_LONGEST_COMMENT])
            lines = _lines_said(file["behind"] if file else "") or _lines_said(
                words[:_LONGEST_COMMENT]
            )
            if lines or (file and file["path"] == words):
                text = source.text(mark.end(), mark.end() + len(data))
                path = _path_and_lines(file["path"])[0] if file else None
                places.append(_place(text, path, lines))
        yield source.whole(block).record(
            language=_LANGUAGE_END.split(block.info, maxsplit=1)[0],
            code=block.code,
            location=location,
            places=places,
        )


def read_locations(part: DocumentPart) -> list[Values]:
    """The places that a location section names."""
    found = []
    for table in part.tables:
        # A table with a column of files, perhaps of lines and symbols, has a place in each row.
        for row in table.records if table.column(FILES) else ():
            entries = [
                LabelledValue(title, cell, cell.start) for title, cell in row.items()
            ]
            found += stated_locations(entries) or [_place(entries[0].value, None)]
    stated = labelled_values(part.source, part.blocks, PLACES)
    return found or stated_locations(stated) or read_mentioned(part)


def read_mentioned(part: DocumentPart) -> list[Values]:
    """The paths in the code spans of a section without labels; without such spans, the paths in its text."""
    return _cited([part.body], _IN_CODE) or _cited([part.body], _FILE_IN_PROSE)


def read_cited(parts: Iterable[DocumentPart]) -> list[Values]:
    """The places that running text cites with lines; without any, the files that it names or links to.

    It is looked for where a ticket has no section for its places.
    """
    texts = (
        part.source.words(block)
        for part in parts
        for block in walk(part.blocks)
        if block.first < block.last
        and block.kind not in ("Heading", "CodeBlock", "HtmlBlock")
    )
    found: dict[tuple[str, str], Values] = {}
    for place in _cited(texts, _CITED):
        if ".." not in place["raw"]:
            found.setdefault((place["file"], repr(place["lines"])), place)
    return [place for place in found.values() if place["lines"]] or list(found.values())


def _cited(texts: Iterable[Excerpt], pattern: re.Pattern[str]) -> list[Values]:
    """The places that a pattern finds, with the lines behind them: ```` `a.py` (lines 10-20) ````."""
    found = []
    matches = ((text, match) for text in texts for match in pattern.finditer(text.raw))
    for text, match in islice(matches, _MOST_CITED):
        start, end = match.span(match.lastgroup or 0)
        for place in place_of(text.piece(start, end)):
            behind = _LINES_OF_SPAN.match(text.raw, end)
            if behind and not place["lines"]:
                place["lines"] = line_ranges(behind["lines"])
            found.append(place)
    return found


def stated_locations(stated: Iterable[LabelledValue]) -> list[Values]:
    """The places in labelled values; a further row of files begins further places."""
    groups: list[dict[str, LabelledValue]] = [{}]
    for entry in stated:
        if FILES.fullmatch(entry.key) and _pick(groups[-1], FILES):
            groups.append({})
        groups[-1].setdefault(entry.key, entry)
    return [place for group in groups for place in _places_of(group)]


def _places_of(rows: Mapping[str, LabelledValue]) -> Iterator[Values]:
    """The places of one row of files, with the rows of lines and symbols that belong to it."""
    files, lines, symbols = (_pick(rows, keys) for keys in (FILES, LINES, SYMBOLS))
    # A row may say only that there is nothing to say: ``N/A``, ``Multiple``.
    files, symbols = (
        entry
        if entry and ("`" in entry.value.raw or not _NOWHERE.match(entry.plain))
        else None
        for entry in (files, symbols)
    )
    named, written = (symbols.plain, symbols.value.raw) if symbols else (None, "")
    if symbols and not files:
        own = line_ranges(lines.plain) if lines else ()
        yield _place(symbols.value, None, own, named, written)
    texts = list(_files_in(files.value)) if files else []
    of_lines = (
        _lines_of(lines, [path for _, path, _ in texts])
        if files and lines
        else [()] * len(texts)
    )
    # As many symbols as files are taken in pairs. Other counts do not say which symbol is in which file, so
    # each file has them all.
    spans = symbols.value.code_spans() if symbols else []
    paired = len(spans) == len(texts) > 1
    for index, ((text, path, own), more) in enumerate(
        zip(texts, of_lines, strict=True)
    ):
        if paired:
            named, written = spans[index].raw, f"`{spans[index].raw}`"
        yield _place(text, path, own or more, named, written)


def _files_in(value: Excerpt) -> Iterator[tuple[Excerpt, str, Lines]]:
    """Each file of a list with its path and its own lines; where some look like paths, only those do."""
    # Remarks between the files are pieces, too.
    pieces = [value.piece(*link.span()) for link in _LINK.finditer(value.raw)]
    pieces = pieces or [text for text in listed(value) if text.raw]
    paths = [text for text in pieces if place_of(text)] or pieces
    if not paths:
        return
    for text, behind in zip(
        paths, [*(each.start for each in paths[1:]), value.end], strict=True
    ):
        path, lines = _path_and_lines(text.plain)
        between = value.source.raw(text.end, max(text.end, behind)).strip("`")
        if lines and _MORE_LINES.fullmatch(between):
            lines += line_ranges(between)
        lines = (
            lines or _lines_said(text.plain.partition(path)[2]) or _lines_said(between)
        )
        yield text, path, lines


def _lines_of(lines: LabelledValue, files: list[str]) -> list[Lines]:
    """The lines of each file: by the file named before them, in order, or all for a single file."""
    # ``a.py: 10-20, b.py: 5``
    before, ranges = _FILE_THEN_LINES.split(lines.plain), line_ranges(lines.plain)
    found = dict.fromkeys(files, Lines())
    for name, text in zip(before[1::2], before[2::2], strict=True):
        path = next((path for path in files if names(name, path)), None)
        if path is None:
            lines.value.report(
                "location-lines", f"{name} is none of the files of this location"
            )
        else:
            found[path] += line_ranges(text)
    of_files = [found[path] for path in files]
    if len(before) == 1 and len(files) == 1:
        of_files = [ranges]
    elif len(before) == 1 and len(files) == len(ranges):
        of_files = [(each,) for each in ranges]
    elif len(before) == 1 and ranges:
        message = f"cannot tell which of the {len(files)} files has which of the {len(ranges)} line ranges"
        lines.value.report("location-lines", message, "write file.py:10-20 for each")
    if not (ranges or _NOWHERE.match(lines.plain) or _NO_LINES.match(lines.plain)):
        lines.value.report("location-lines", f"no line numbers in {lines.plain!r}")
    return of_files


def _pick(
    rows: Mapping[str, LabelledValue], keys: re.Pattern[str]
) -> LabelledValue | None:
    return next((value for key, value in rows.items() if keys.fullmatch(key)), None)
