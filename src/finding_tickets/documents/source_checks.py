"""What shows that a file is not as its author wanted it: an open merge or fence, rows that are none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from finding_tickets.documents.blocks import DEEPEST, TOO_DEEP, table_of
from finding_tickets.documents.sections import DocumentPart
from finding_tickets.documents.source import Source
from finding_tickets.model.problem import Level

_MERGE = re.compile(
    rb"(?:\A|(?<=[\r\n]))(?:(?P<ours><{7})|(?P<between>\|{7}|={7})|(?P<theirs>>{7}))(?=[ \r\n]|\Z)"
)
_FENCE = re.compile(rb"[ \t]*(?P<fence>`{3,}|~{3,})")
_LINE_ENDS = {b"\r\n": "CRLF", b"\n": "LF", b"\r": "CR"}
_LINE_END = re.compile(rb"\r\n|\n|\r")


def is_text(source: Source) -> bool:
    """Whether the bytes are text; reports the line on which they are not."""
    if not source.data.strip():
        source.report("empty-file", 0, "the file is empty", level=Level.ERROR)
        return False
    nul = source.data.find(b"\0")
    if nul >= 0:
        source.report("binary-file", nul, "a NUL byte: this is not a text file", level=Level.ERROR)
        return False
    try:
        source.data.decode()
    except UnicodeDecodeError as error:
        message = f"byte 0x{source.data[error.start]:02x} is not UTF-8"
        hint = "save the file as UTF-8"
        source.report("invalid-utf8", error.start, message, hint=hint, level=Level.ERROR)
        return False
    return True


def check_source(source: Source, parts: Iterable[DocumentPart]) -> None:
    """Report all of it but for the tables; ``parts`` make up the whole file."""
    # Most files have no mark of a merge, and looking for one at the start of each line takes as long as
    # parsing. A line of equal signs is one within a conflict only.
    if any(mark in source.data for mark in (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")):
        within = False
        for mark in _MERGE.finditer(source.data):
            if within or not mark["between"]:
                message = "a mark of a merge that is not finished: what follows may be there twice"
                source.report("merge-conflict", mark.start(), message, level=Level.ERROR)
            within = bool(mark["ours"] or (within and mark["between"]))
    if b"\r" in source.data:
        ends = [(match.start(), match[0]) for match in _LINE_END.finditer(source.data)]
        counts = {end: sum(1 for _, each in ends if each == end) for end in _LINE_ENDS}
        usual = max(counts, key=lambda end: counts[end])
        # The first line that ends otherwise than most is what an editor or a merge has brought in.
        first = next((offset for offset, end in ends if end != usual), None)
        if first is not None:
            stated = ", ".join(f"{counts[end]} in {name}" for end, name in _LINE_ENDS.items() if counts[end])
            message = f"the file mixes line ends: of {len(ends)} lines {stated}"
            source.report("line-ends", first, message)
    for part in parts:
        for block in part.by_kind[TOO_DEEP]:
            message = f"nested more than {DEEPEST} deep: what is in it is not read"
            source.report("nesting", block.start, message)
        for block in part.by_kind["CodeBlock"]:
            text = source.data[block.start : block.end].rstrip()
            fence = _FENCE.match(text)
            last = text[max(text.rfind(b"\n"), text.rfind(b"\r")) + 1 :].lstrip(b" \t>")
            alone = len(text.splitlines()) == 1
            if fence and (alone or not last.startswith(fence["fence"]) or last.strip(fence["fence"][:1])):
                message = "the fence is not closed: what follows is read as code"
                source.report("unclosed", block.start, message, hint="end the code with the same fence")
        # An open comment hides everything behind it, also from GitHub.
        for block in part.by_kind["HtmlBlock"]:
            text = source.data[block.start : block.end].strip()
            if text.startswith(b"<!--") and b"-->" not in text:
                message = "the comment is not closed, so what follows is not read"
                source.report("unclosed", block.start, message, hint="end the comment with -->")


def check_tables(source: Source, parts: Iterable[DocumentPart]) -> None:
    """Report the rows that do not mean in Markdown what they seem to mean."""
    for part in parts:
        for block in part.by_kind["Table"]:
            for row in table_of(source, block).body:
                if row.text:
                    message = (
                        "no blank line between this line and the table above, so Markdown makes it a row"
                    )
                    source.report("table-text", row.block.start, message)
                elif row.overfull:
                    message = f"the row has more cells than the {len(row.block.children)} of its header"
                    hint = r"a pipe ends a cell even inside backticks; write it as \|"
                    source.report("table-cells", row.block.children[-1].end, message, hint=hint)
        for block in part.by_kind["Paragraph"]:
            text = source.data[block.start : block.end]
            if b"|" not in text:
                continue
            # Two lines that look like rows, in what Markdown takes for text.
            lines = [line.strip() for line in text.splitlines()]
            rows = [len(line) > 1 and line.startswith(b"|") and line.endswith(b"|") for line in lines]
            for number, (one, next_one) in enumerate(pairwise(rows), source.line(block.start)):
                if one and next_one:
                    message = "rows without a delimiter row, so Markdown makes no table of them"
                    hint = "below the header write |---|---|, with as many cells as the header"
                    source.report_line("table-delimiter", number, message, hint=hint)
                    break
