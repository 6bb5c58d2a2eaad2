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
from finding_tickets.model.ticket import Location, Span
from finding_tickets.model.vocabulary import Level, Outcome, Status
from finding_tickets.register.disposition import status_of
from finding_tickets.register.entries import outcome_of

_PATTERN = re.compile(r"[*?{}<>]")


@check(
    Rule("absolute-path", Level.WARNING, fixable=True),
    Rule("missing-file", Level.WARNING),
    Rule("missing-line", Level.WARNING),
)
def citations(document: Document, context: Context) -> Iterator[Remark]:
    """Find paths and lines, in locations and above quoted code, that are not in the repository."""
    is_here = _is_about_this_code(document, context)
    quoted = [place for block in document.evidence for place in block.places]
    for place in (*document.locations, *quoted):
        if not place.file:
            continue
        path, code = place.file, context.code
        span = _span_of(place, path)
        if is_absolute(path):
            short = code.at_home(path)
            hint = (
                f"write {short}"
                if short
                else "write the path from the repository's root"
            )
            fix = [Splice(span.start, span.end, short.encode())] if short else []
            yield Remark(
                "absolute-path", span, f"{path} is an absolute path", hint, fix
            )
        file = _resolved(path, document, context) if is_here else None
        may_be_elsewhere = place in quoted or is_absolute(path) or _PATTERN.search(path)
        if is_here and file is None and not may_be_elsewhere:
            hint = "add a row **Code Repository** where the code lives elsewhere"
            if guess := code.files_like(path):
                hint = f"{guess} {hint}"
            yield Remark(
                "missing-file", span, f"{path} does not exist in this repository", hint
            )
        last = max((each.last for each in place.lines), default=0)
        count = code.line_count(file) if file else None
        if count is not None and last > count:
            message = f"line {last} is cited, and {file} ends with line {count}"
            yield Remark("missing-line", span, message)


def _span_of(place: Location, path: str) -> Span:
    """Return where the path alone stands; the whole place where it is written otherwise."""
    before, found, _ = place.raw.partition(path)
    if not found:
        return place.span
    start = place.span.start + len(before.encode())
    return Span(start, start + len(found.encode()), place.span.line)


def _is_about_this_code(document: Document, context: Context) -> bool:
    """Return True if the code is said to be in this repository, and was not changed by the fix."""
    settled = (
        outcome_of(document) is Outcome.FIXED or status_of(document) is Status.FIXED
    )
    refs = document.remediation.variants if document.remediation else {}
    changed = settled or ("fix" in refs and "found" in refs and refs["found"].revision)
    return context.code.has_code and document.code_repository is None and not changed


def _resolved(path: str, document: Document, context: Context) -> str | None:
    """Return the file of this repository that is cited: by its path, an absolute one, or its name alone."""
    if is_absolute(path):
        return context.code.at_home(path)
    if context.code.exists(path):
        return path
    cited = (
        each.file for each in document.locations if each.file and each.file != path
    )
    return next(
        (each for each in cited if names(path, each) and context.code.exists(each)),
        None,
    )
