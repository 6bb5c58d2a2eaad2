"""What shows that a file is not as its author wanted it: an open merge, fence or comment, mixed line ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from finding_tickets.documents.blocks import DEEPEST, TOO_DEEP, Block
from finding_tickets.documents.parts import Part
from finding_tickets.documents.source import Source
from finding_tickets.model.problem import Level

_MERGE = re.compile(
    rb"(?:\A|(?<=[\r\n]))(?:(?P<ours><{7})|(?P<between>\|{7}|={7})|(?P<theirs>>{7}))(?=[ \r\n]|\Z)"
)
_FENCE = re.compile(rb"[ \t]*(?P<fence>`{3,}|~{3,})")
_LINE_ENDS = {b"\r\n": "CRLF", b"\n": "LF", b"\r": "CR"}
_LINE_END = re.compile(rb"\r\n|\n|\r")


def report_unfinished(source: Source, parts: Iterable[Part]) -> None:
    """Report all of it; ``parts`` make up the whole file."""
    for offset in _merge_marks(source.data):
        message = "a mark of a merge that is not finished: what follows may be there twice"
        source.report("merge-conflict", offset, message, level=Level.ERROR)
    _report_line_ends(source)
    for part in parts:
        for block in part.by_kind[TOO_DEEP]:
            message = f"nested more than {DEEPEST} deep: what is in it is not read"
            source.report("nesting", block.start, message)
        for block in (*part.by_kind["CodeBlock"], *part.by_kind["HtmlBlock"]):
            _report_open(source, block)


def _merge_marks(data: bytes) -> Iterator[int]:
    """Where git left its marks; a line of equal signs is one within a conflict only."""
    # Most files have none, and looking for one at the start of each line takes as long as parsing.
    if not any(mark in data for mark in (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")):
        return
    within = False
    for mark in _MERGE.finditer(data):
        if within or not mark["between"]:
            yield mark.start()
        within = bool(mark["ours"] or (within and mark["between"]))


def _report_line_ends(source: Source) -> None:
    """Report the first line that ends otherwise than most, which an editor or a merge has brought in."""
    if b"\r" not in source.data:
        return
    ends = [(match.start(), match[0]) for match in _LINE_END.finditer(source.data)]
    counts = {end: sum(1 for _, each in ends if each == end) for end in _LINE_ENDS}
    usual = max(counts, key=lambda end: counts[end])
    first = next((offset for offset, end in ends if end != usual), None)
    if first is not None:
        stated = ", ".join(f"{counts[end]} in {name}" for end, name in _LINE_ENDS.items() if counts[end])
        message = f"the file mixes line ends: of {len(ends)} lines {stated}"
        source.report("line-ends", first, message)


def _report_open(source: Source, block: Block) -> None:
    """Report a fence or a comment that ends only because the file, or what it is in, does."""
    text = source.data[block.start : block.end].rstrip()
    fence = _FENCE.match(text)
    if block.kind == "CodeBlock" and fence and not _closes(text, fence["fence"]):
        message, hint = (
            "the fence is not closed: what follows is read as code",
            "end the code with the same fence",
        )
    elif block.kind == "HtmlBlock" and text.lstrip().startswith(b"<!--") and b"-->" not in text:
        message, hint = "the comment is not closed, so what follows is not read", "end the comment with -->"
    else:
        return
    source.report("unclosed", block.start, message, hint=hint)


def _closes(text: bytes, fence: bytes) -> bool:
    """Whether the last line of a block is a fence that closes the one it opens with."""
    before = max(text.rfind(b"\n"), text.rfind(b"\r"))
    last = text[before + 1 :].lstrip(b" \t>") if before >= 0 else b""
    return last.startswith(fence) and not last.strip(fence[:1])
