"""Rules about the code that a ticket cites, as it is in this repository; silent where the code is elsewhere.

What is settled as fixed speaks of code that has changed since, so only the paths themselves are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from finding_tickets.documents.locations import names
from finding_tickets.documents.reading import Document
from finding_tickets.documents.source import Splice
from finding_tickets.lint.rules.rule import Context, Remark, Rule, check
from finding_tickets.lint.worktree import is_absolute
from finding_tickets.model.ticket import CodeBlock, Span, Text
from finding_tickets.model.vocabulary import Level, Outcome, Status
from finding_tickets.register.disposition import status_of
from finding_tickets.register.entries import outcome_of

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
# Beside a place: that what follows is not what stands there.
_RESTATED = re.compile(
    r"\b(?:pseudo|simplif|abridg|sketch|conceptual|example|propos|suggest|recommend|should|after|fixed)",
    re.IGNORECASE,
)
_PATTERN = re.compile(r"[*?{}<>]")
_NO_CODE = re.compile(r"\W*|(?:#|//).*|\W*\.\.\.\W*")


@check(
    Rule("absolute-path", Level.WARNING, fixable=True),
    Rule("missing-file", Level.WARNING),
    Rule("missing-line", Level.WARNING),
)
def citations(document: Document, context: Context) -> Iterator[Remark]:
    """Paths and lines, in locations and above quoted code, that are not in the repository."""
    here = _is_about_this_code(document, context)
    quoted = [place for block in document.evidence for place in block.places]
    for number, place in enumerate((*document.locations, *quoted)):
        if not place.file:
            continue
        path, is_quoted = place.file, number >= len(document.locations)
        # Where the path alone stands; the whole place where it is written otherwise.
        before, found, _ = place.raw.partition(path)
        start = place.span.start + len(before.encode())
        span = Span(start, start + len(found.encode()), place.span.line) if found else place.span
        if is_absolute(path):
            short = context.code.at_home(path)
            hint = f"write {short}" if short else "write the path from the repository's root"
            fix = [Splice(span.start, span.end, short.encode())] if short else []
            yield Remark("absolute-path", span, f"{path} is an absolute path", hint, fix)
        file = _resolved(path, document, context) if here else None
        if here and file is None and not (is_quoted or is_absolute(path) or _PATTERN.search(path)):
            guess = context.code.files_like(path)
            hint = "add a row **Code Repository** where the code lives elsewhere"
            message = f"{path} does not exist in this repository"
            yield Remark("missing-file", span, message, f"{guess} {hint}" if guess else hint)
        last = max((each.last for each in place.lines), default=0)
        count = context.code.line_count(file) if file and last else None
        if count is not None and last > count:
            message = f"line {last} is cited, and {file} has {count} line{'s' * (count != 1)}"
            yield Remark("missing-line", span, message)


@check(Rule("quoted-code", Level.WARNING))
def quoted_code(document: Document, context: Context) -> Iterator[Remark]:
    """The first quoted line of each piece of code that its file does not have."""
    quotations = (each for block in document.evidence for each in _quotations(block))
    for cited, lines in quotations if _is_about_this_code(document, context) else ():
        file = _resolved(cited, document, context)
        if file is None or context.code.line_count(file) is None:
            continue
        gone = next((line for line in lines if not context.code.holds(file, line.raw)), None)
        if gone:
            message = f"{file} does not have this line (any more): {gone.raw.strip()}"
            yield Remark("quoted-code", gone.span, message)


def _is_about_this_code(document: Document, context: Context) -> bool:
    """Whether the code is in this repository, as far as anybody says, and was not changed by the fix."""
    settled = outcome_of(document) is Outcome.FIXED or status_of(document) is Status.FIXED
    refs = document.remediation.variants if document.remediation else {}
    changed = settled or ("fix" in refs and "found" in refs and refs["found"].revision)
    return context.code.has_code and document.code_repository is None and not changed


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
