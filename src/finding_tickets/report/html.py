"""A report as one page of HTML that works offline, asks for nothing and trusts no ticket.

The sections of a large register are packed: a browser unpacks those that somebody opens, because a page with
all of them would not be usable. Jinja escapes whatever is not made here.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from urllib.parse import unquote

from markupsafe import Markup

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.model.remediation import Remediation
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import SiteLaw
from finding_tickets.report.charts import Chart, Charts, charts
from finding_tickets.report.contexts import Report
from finding_tickets.report.difference import Difference, difference, revision_of, variant_places
from finding_tickets.report.drawing import drawn
from finding_tickets.report.measured import NO_LAW
from finding_tickets.report.prose import prose
from finding_tickets.report.rows import Row
from finding_tickets.report.sources import Sources
from finding_tickets.report.templates import pieces, source

MOST_UNPACKED = 60
"""The largest register whose sections are part of the page from the start."""
PACK = 50
"""Sections that are packed together: more of them take less room, fewer are opened faster."""
FIRST_ROWS = 200
"""Rows of the table that are laid out from the start, and for each time that more are asked for."""
LONGEST_LIST = 100
"""Items of a list in the summary; the table has them all."""
HEADINGS = 3
"""How many levels the headings of a document stand below those of a page of its own."""
_LEVEL = 5
"""Of compression: the next one takes half as much time again for a tenth less room."""


@dataclass(frozen=True, slots=True)
class SiteLine:
    """A source line and the laws of what it costs by metric; ``code`` is empty where it is not known."""

    file: str
    number: int
    function: str
    code: str
    costs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A document that another one names, and its place on the page if it has one."""

    id: str
    how: str
    anchor: str | None


@dataclass(frozen=True, slots=True)
class Law:
    """A metric of the code as found and of the fix: what was measured, and the claim where that says else."""

    metric: str
    measured: str
    claimed: str


class Section:
    """One document of the page, looked up as the template asks for it."""

    def __init__(self, page: Page, row: Row, anchor: str) -> None:
        self.row, self.anchor = row, anchor
        self._page = page

    @property
    def text(self) -> Markup | None:
        """What the document says; None where it is gone by now."""
        try:
            data = (self._page.report.facts.root / self.row.path).read_bytes()
        except OSError:
            return None
        resolve = self._page.resolver(self.row.path)
        return Markup(prose(data.decode(errors="replace"), below=HEADINGS, resolve=resolve))  # noqa: S704 - sanitized

    @property
    def related(self) -> tuple[Link, ...]:
        """The documents that this one names."""
        anchors = self._page.by_id
        return tuple(Link(each, how, anchors.get(each.casefold())) for each, how in self.row.stated.related)

    @cached_property
    def charts(self) -> Charts:
        """What was measured, drawn."""
        return charts(self.row.verification) if self.row.verification else Charts((), ())

    def picture(self, chart: Chart) -> Markup:
        """One of the charts as SVG."""
        return drawn(chart)

    @cached_property
    def remediation(self) -> Remediation | None:
        """What the document claims; looked for only where the index knows of a verifier or of evidence."""
        return self._document.remediation if self._document else None

    @property
    def difference(self) -> Difference | None:
        """The code as it was found against the fix."""
        return difference(self._places, self._page.report.facts.root)

    @property
    def sites(self) -> Mapping[str, Sequence[SiteLine]]:
        """The lines that wait, copy or allocate, by variant."""
        variants = self.row.verification.variants if self.row.verification else {}
        return {
            name: list(self._lines(name, variant.sites))
            for name, variant in variants.items()
            if variant.sites
        }

    def _lines(self, variant: str, sites: Sequence[SiteLaw]) -> Iterator[SiteLine]:
        # What was measured is not what stands there now.
        elsewhere = self.row.verdict is Verdict.STALE or revision_of(self._places.get(variant, ""))
        costs: dict[tuple[str, int, str], list[tuple[str, str]]] = {}
        for site in sites:
            place = (site.file, site.line, site.function)
            costs.setdefault(place, []).append((site.what, site.law or site.growth or NO_LAW))
        for (file, number, function), each in costs.items():
            code = "" if elsewhere else self._page.sources.line(file, number)
            yield SiteLine(file, number, function, code, tuple(each))

    @cached_property
    def _places(self) -> dict[str, str]:
        return variant_places(self._document, self._page.report.facts.root) if self._document else {}

    @cached_property
    def _document(self) -> Document | None:
        facts = self._page.report.facts
        known = self.row.verification or facts.has_verifier(self.row.stated)
        return facts.document(self.row.stated) if known else None


class Page:
    """What the template of the page is given beside the report."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.sources = Sources(report.facts.root)
        self.anchors = tuple(_anchors(report.rows))
        self.packed = len(report.rows) > MOST_UNPACKED
        self._resolvers: dict[str, Callable[[str], str | None]] = {}

    @cached_property
    def by_id(self) -> dict[str, str]:
        """The place of each document by its ID."""
        pairs = zip(self.report.rows, self.anchors, strict=True)
        return {row.id.casefold(): anchor for row, anchor in reversed(list(pairs))}

    @cached_property
    def by_path(self) -> dict[str, str]:
        """The place of each document by its file."""
        return {row.path: anchor for row, anchor in zip(self.report.rows, self.anchors, strict=True)}

    def resolver(self, path: str) -> Callable[[str], str | None]:
        """Leads the links of the document at ``path`` to other documents of the page, or nowhere."""
        folder = posixpath.dirname(path)
        if folder not in self._resolvers:
            self._resolvers[folder] = partial(self._resolve, folder)
        return self._resolvers[folder]

    def _resolve(self, folder: str, address: str) -> str | None:
        file = unquote(address.partition("#")[0].partition("?")[0])
        anchor = self.by_path.get(posixpath.normpath(posixpath.join(folder, file)))
        return f"#{anchor}" if anchor and file else None

    def sections(self) -> Iterator[Section]:
        """Every document, in the order of the report."""
        for row, anchor in zip(self.report.rows, self.anchors, strict=True):
            yield Section(self, row, anchor)

    def packs(self) -> Iterator[list[Section]]:
        """The documents, as many at a time as are packed together."""
        sections = self.sections()
        return iter(lambda: list(islice(sections, PACK)), [])


def write(report: Report) -> Iterator[str]:
    """The page, piece by piece.

    Raises:
        UsageError: There is no such template.
        BadDataError: The template is wrong, or uses a name that the report does not have.
    """
    style, script = _part("report.css", "</style", report), _part("report.js", "</script", report)
    context = {
        "report": report,
        "status": report.status,
        "page": Page(report),
        "style": Markup(style),  # noqa: S704 - a file of the tool's or the register's owner
        "script": Markup(script),  # noqa: S704 - likewise
        "policy": policy(style, script),
        "pack": pack,
        "laws_of": laws_of,
        "limits": {"rows": FIRST_ROWS, "list": LONGEST_LIST, "pack": PACK},
    }
    # A path may have bytes that are no text.
    made = pieces(report.template, context, report.templates)
    return (piece.encode(errors="replace").decode() for piece in made)


def _part(name: str, end: str, report: Report) -> str:
    """The text of a file for an element that ends with ``end``."""
    text = source(name, report.templates)
    if end in text.lower() or "<!--" in text:
        raise BadDataError(f"template {name}: neither {end}> nor <!-- may be part of it")
    return text


def laws_of(row: Row) -> tuple[Law, ...]:
    """What is known of each metric that a document makes claims about, before and after the fix."""
    measured, claimed = (
        {change.metric: change.text.replace("->", "\u2192") for change in each}
        for each in (row.changes, row.claimed)
    )
    return tuple(
        Law(metric, measured.get(metric, ""), claim if claim != measured.get(metric) else "")
        for metric in dict.fromkeys((*measured, *claimed))
        if (claim := claimed.get(metric, "")) or metric in measured
    )


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy of a page: its own style and script run, and nothing else is asked for."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def pack(text: str) -> str:
    """A text as the page's script unpacks it: zlib's format in base 64."""
    return base64.b64encode(zlib.compress(text.encode(errors="replace"), _LEVEL)).decode()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _anchors(rows: Sequence[Row]) -> Iterator[str]:
    """An ID for each row's place on the page: the document's own, and a number where several share one.

    An ID that stands for a file's name may have white space, and what is no text.
    """
    seen: Counter[str] = Counter()
    for row in rows:
        name = "-".join(row.id.encode(errors="replace").decode().split())
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}~{seen[name]}"
