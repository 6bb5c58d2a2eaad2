"""Rules about the code that a ticket cites, as it is in this repository; silent where the code is elsewhere.

What is settled as fixed speaks of code that has changed since, so only the paths themselves are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from finding_tickets.documents.edit.splices import Splice
from finding_tickets.documents.locations import names
from finding_tickets.documents.reading import Document
from finding_tickets.lint.rules.rule import Context, Remark, rule
from finding_tickets.lint.rules.worktree import is_absolute
from finding_tickets.model.problem import Level
from finding_tickets.model.record import Span, Text
from finding_tickets.model.ticket import CodeBlock, LineRange
from finding_tickets.model.vocabulary import Outcome, Status
from finding_tickets.register.disposition import status_of
from finding_tickets.register.index import outcome_of

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
# Beside a place: that what follows is not what stands there.
_RESTATED = re.compile(
    r"\b(?:pseudo|simplif|abridg|sketch|conceptual|example|propos|suggest|recommend|should|after|fixed)",
    re.IGNORECASE,
)
_PATTERN = re.compile(r"[*?{}<>]")
_NO_CODE = re.compile(r"\W*|(?:#|//).*|\W*\.\.\.\W*")


class Citation(NamedTuple):
    """A path that a ticket cites, where it stands, and the lines that are meant."""

    path: str
    span: Span
    lines: tuple[LineRange, ...]


@rule("absolute-path", Level.WARNING, fixable=True)
def absolute_path(document: Document, context: Context) -> Iterator[Remark]:
    """Absolute paths of locations, and above quoted code."""
    for path, span, _ in (*_located(document), *_quoted_places(document)):
        if is_absolute(path):
            short = context.code.at_home(path)
            hint = f"write {short}" if short else "write the path from the repository's root"
            fix = [Splice(span.start, span.end, short.encode())] if short else []
            yield Remark(span, f"{path} is an absolute path", hint, fix)


@rule("missing-file", Level.WARNING)
def missing_file(document: Document, context: Context) -> Iterator[Remark]:
    """Locations whose file is not in the repository."""
    if not _is_about_this_code(document, context):
        return
    for path, span, _ in _located(document):
        if is_absolute(path) or _PATTERN.search(path):
            continue
        if _resolved(path, document, context) is None:
            guess = context.code.files_like(path)
            hint = "add a row **Code Repository** where the code lives elsewhere"
            message = f"{path} does not exist in this repository"
            yield Remark(span, message, f"{guess} {hint}" if guess else hint)


@rule("missing-line", Level.WARNING)
def missing_line(document: Document, context: Context) -> Iterator[Remark]:
    """Line numbers past the end of the file, in locations and above quoted code."""
    if not _is_about_this_code(document, context):
        return
    for path, span, lines in (*_located(document), *_quoted_places(document)):
        file = _resolved(path, document, context) if lines else None
        count = context.code.line_count(file) if file else None
        last = max((each.last for each in lines), default=0)
        if count is not None and last > count:
            yield Remark(span, f"line {last} is cited, and {file} has {count} line{'s' * (count != 1)}")


@rule("quoted-code", Level.WARNING)
def quoted_code(document: Document, context: Context) -> Iterator[Remark]:
    """The first quoted line of each piece of code that its file does not have."""
    if not _is_about_this_code(document, context):
        return
    for block in document.evidence:
        for cited, lines in _quotations(block):
            file = _resolved(cited, document, context)
            if file is None or context.code.line_count(file) is None:
                continue
            gone = next((line for line in lines if not context.code.holds(file, line.raw)), None)
            if gone:
                yield Remark(gone.span, f"{file} does not have this line (any more): {gone.raw.strip()}")


def _is_about_this_code(document: Document, context: Context) -> bool:
    """Whether the code is in this repository, as far as anybody says, and was not changed by the fix."""
    settled = outcome_of(document) is Outcome.FIXED or status_of(document) is Status.FIXED
    return context.code.has_code and document.code_repository is None and not settled


def _located(document: Document) -> Iterator[Citation]:
    """The paths of the locations, where they stand."""
    for location in document.locations:
        if location.file:
            yield Citation(location.file, _within(location, location.file), location.lines)


def _quoted_places(document: Document) -> Iterator[Citation]:
    """The places that comments in the quoted code name."""
    for block in document.evidence:
        for place in block.places:
            if place.file:
                yield Citation(place.file, _within(place, place.file), place.lines)


def _quotations(block: CodeBlock) -> Iterator[tuple[str, list[Text]]]:
    """The file that each place of a block names, with the lines of code from there to the next one.

    A comment that mentions a place among other words is about the code, and does not begin a quotation; one
    that says that the code is restated ends one.
    """
    starts = {
        place.span.line: place for place in block.places if place.file and place.raw.startswith(place.file)
    }
    offset, file, found = block.span.start, None, list[Text]()
    for number, line in enumerate(_LINE.findall(block.raw), block.span.line):
        if place := starts.get(number):
            if file:
                yield file, found
            file, found = None if _RESTATED.search(place.raw) else place.file, []
        code = line.strip()
        if file and not _NO_CODE.fullmatch(code):
            start = offset + len(line[: line.index(code)].encode())
            found.append(Text(raw=code, span=Span(start=start, end=start + len(code.encode()), line=number)))
        offset += len(line.encode())
    if file:
        yield file, found


def _resolved(path: str, document: Document, context: Context) -> str | None:
    """The file of this repository that is cited: by its path, an absolute one, or its name alone."""
    if is_absolute(path):
        return context.code.at_home(path)
    if context.code.exists(path):
        return path
    cited = (each.file for each in document.locations if each.file and each.file != path)
    return next((each for each in cited if names(path, each) and context.code.exists(each)), None)


def _within(text: Text, part: str) -> Span:
    """Where ``part`` stands in a text of one line; the whole text where it is written otherwise."""
    before, found, _ = text.raw.partition(part)
    if not found:
        return text.span
    start = text.span.start + len(before.encode())
    return Span(start=start, end=start + len(part.encode()), line=text.span.line)
