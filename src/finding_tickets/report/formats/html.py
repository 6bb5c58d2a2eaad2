"""Write a report as one HTML page that works offline, loads nothing and does not trust tickets.

The sections of a large register are packed: a browser unpacks a section when it is opened, because a page
with all of them would not be usable. Jinja escapes whatever is not made here, and Markdown is sanitized.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import posixpath
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

import nh3
import pyromark
from markupsafe import Markup

from finding_tickets.claims.metrics import WAITING
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.ground.git import GitError, ask_bytes
from finding_tickets.report.rows import ReportRow
from finding_tickets.report.status import StatusReport, gains_text
from finding_tickets.report.templates import render_pieces, source
from finding_tickets.report.verification import AFTER, BEFORE, law_of, laws_by_line
from finding_tickets.verify.plan import places_of

# The largest register whose sections are part of the page from the start.
MOST_UNPACKED = 60
LIMITS = {
    "rows": 200,  # of the table, from the start and for each time that more are asked for
    "headlines": 10,  # documents that are told of at the top; the table has them all
    "named": 3,  # documents for each step
    "list": 100,  # items of a list in the summary
    "pack": 50,  # sections that are packed together: more take less room, fewer are opened faster
}
# How many levels the headings of a document stand below those of a page of its own.
HEADINGS = 3
# What the code as it was found is compared with: the first of these that there is, else any variant.
NEXT_BEST = (AFTER, "applied", "recommended")
# Lines that are shown around a change of code.
CONTEXT = 3

# Where a link that names no host leads: an address within the page, or None for nowhere.
Resolve = Callable[[str], str | None]

# The next level takes half as much time again for a tenth less room.
_LEVEL = 5
_DEEPEST = 6
_OPTIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_TASKLISTS
    | pyromark.Options.ENABLE_STRIKETHROUGH
)
_PARSER = pyromark.Markdown(options=_OPTIONS)
_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE
)
_MAYBE_HTML = re.compile(r"<[a-z/!?]", re.IGNORECASE)
# What cannot do anything but set text; comments are left to the sanitizer, which drops them.
_PLAIN_HTML = re.compile(
    r"</?(?:br|kbd|sub|sup)\s*/?>|<!--.*-->\s*", re.IGNORECASE | re.DOTALL
)
_TITLE = re.compile(r"<h1>.*?</h1>\n?", re.DOTALL)
_IMAGE = re.compile(r'<img src="([^"]*)" alt="([^"]*)"[^>]*>')
_ALIGNED = re.compile(r'(<t[dh]) style="text-align: (left|center|right)"')
_BOX = re.compile(r'<input disabled="" type="checkbox"( checked="")?/>\n?')
_LANGUAGE = re.compile(r'<code class="[^"]*">')
_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "kbd", "li", "ol", "p",
    "pre", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_SCHEMES = {"http", "https", "mailto"}
_ALIGNMENTS = {"left", "center", "right"}

# A file, a number, a function, the code, empty where it is not known, and what it costs by which laws.
SourceLine = tuple[str, int, str, str, Sequence[tuple[str, str]]]


def trusted_html(
    text: str, *, below: int = 0, resolve: Resolve = lambda _: None
) -> str:
    """The HTML of a Markdown text, of tags that set text and of links alone.

    HTML within the text is shown as it is written. Images become links. The first heading of level 1, which
    is the document's title, is left out, and all others are ``below`` levels deeper.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    text = _FRONT_MATTER.sub(
        lambda found: f"{'`' * 9}yaml\n{found[1]}{'`' * 9}\n", text, count=1
    )
    html = _TITLE.sub("", _PARSER.html(_escape_html(text)), count=1).replace(
        "<hr />\n", ""
    )
    html = _IMAGE.sub(
        lambda image: f'<a href="{image[1]}">{image[2] or image[1]}</a>', html
    )
    html = _BOX.sub(lambda box: "\u2611 " if box[1] else "\u2610 ", html)
    html = _ALIGNED.sub(r'\1 class="\2"', _LANGUAGE.sub("<code>", html))
    html = _cleaner(resolve).clean(html)
    # From the deepest up, so that no heading is lowered twice.
    for level in range(_DEEPEST, 0, -1) if below else ():
        lower = min(level + below, _DEEPEST)
        html = html.replace(f"<h{level}>", f"<h{lower}>").replace(
            f"</h{level}>", f"</h{lower}>"
        )
    return html.replace("<table>", '<div class="wide"><table>').replace(
        "</table>", "</table></div>"
    )


@lru_cache(maxsize=64)
def _cleaner(resolve: Resolve) -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        allowed_classes={"td": _ALIGNMENTS, "th": _ALIGNMENTS},
        url_schemes=_SCHEMES,
        url_relative=resolve,
    )


def _escape_html(text: str) -> str:
    """The text with every ``<`` that begins HTML escaped, but for tags that can do no harm."""
    if not _MAYBE_HTML.search(text):
        return text
    # The parser's ranges count bytes.
    data = text.encode(errors="replace")
    kept, at = [], 0
    for event, span in _PARSER.events_with_range(data.decode()):
        if not isinstance(event, dict) or not (
            event.get("Start") == "HtmlBlock" or "InlineHtml" in event
        ):
            continue
        start, end = span["start"], span["end"]
        # A tag within a piece that is escaped already is text.
        if start >= at and not _PLAIN_HTML.fullmatch(data[start:end].decode()):
            kept += [data[at:start], data[start:end].replace(b"<", b"&lt;")]
            at = end
    return b"".join([*kept, data[at:]]).decode()


@dataclass(frozen=True, slots=True)
class CodeDiff:
    """Two variants, their places as ``file:function``, and the lines of a unified diff of their code."""

    before: str
    after: str
    before_place: str
    after_place: str
    lines: tuple[str, ...]


def code_diff(places: Mapping[str, str], root: Path) -> CodeDiff | None:
    """From the code as it was found to the fix, or to the next best variant; None without files of both."""
    fix = next(
        (name for name in (*NEXT_BEST, *places) if name in places and name != BEFORE),
        None,
    )
    if BEFORE not in places or fix is None:
        return None
    before, after = (
        read_lines(root, places[name].partition(":")[0], revision_of(places[name]))
        for name in (BEFORE, fix)
    )
    if not (before and after):
        return None
    # The names of the files, which come first, are shown already.
    lines = tuple(difflib.unified_diff(before, after, lineterm="", n=CONTEXT))[2:]
    return CodeDiff(BEFORE, fix, places[BEFORE], places[fix], lines)


def read_lines(root: Path, file: str, revision: str) -> list[str]:
    """Return the lines of a file at a revision, or as it is now; none if it cannot be read."""
    data = b""
    with suppress(GitError, OSError, ValueError):
        if revision:
            # A revision must not be taken for an option.
            data = ask_bytes(
                root, "cat-file", "blob", f"{revision.lstrip('-')}:./{file}"
            )
        else:
            path = (root / file).resolve()
            if path.is_relative_to(root.resolve()) and path.is_file():
                data = path.read_bytes()
    text = data.decode(errors="replace").replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def revision_of(place: str) -> str:
    """The revision that a place states, as in ``file:function@REV``; empty for the work tree."""
    return place.partition(":")[2].partition("@")[2]


@dataclass
class DocumentSection:
    """One document of the page, looked up as the template asks for it."""

    page: ReportPage
    row: ReportRow
    anchor: str

    @property
    def text(self) -> Markup | None:
        """The document's text as HTML; None if the file is missing."""
        try:
            text = (
                (self.page.report.facts.root / self.row.path)
                .read_bytes()
                .decode(errors="replace")
            )
        except OSError:
            return None
        resolve = self.page.resolver(self.row.path)
        return Markup(trusted_html(text, below=HEADINGS, resolve=resolve))  # noqa: S704 - sanitized

    @property
    def laws(self) -> list[tuple[str, list[str]]]:
        """Each metric of a claim, with what was measured of every variant."""
        done = self.row.verification
        if done is None:
            return []
        rows = []
        for metric in dict.fromkeys(claim.metric for claim in done.claims):
            laws = [law_of(variant, metric) or "" for variant in done.variants.values()]
            if any(laws):
                rows.append((metric, laws))
        return rows

    @property
    def difference(self) -> CodeDiff | None:
        """The code as it was found against the fix."""
        return code_diff(self._places, self.page.report.facts.root)

    @property
    def sites(self) -> Sequence[tuple[str, Sequence[SourceLine], Sequence[SourceLine]]]:
        """Each variant with its lines that wait or copy, and those that only cost something else."""
        variants = self.row.verification.variants if self.row.verification else {}
        sites = []
        for name, variant in variants.items():
            waiting_first = sorted(
                variant.sites, key=lambda site: site.what not in WAITING
            )
            lines = [
                (*place, laws) for place, laws in laws_by_line(waiting_first).items()
            ]
            waiting = [
                line for line in lines if any(what in WAITING for what, _ in line[-1])
            ]
            sites.append(
                (name, waiting, [line for line in lines if line not in waiting])
            )
        return sites

    @property
    def won(self) -> str:
        """The gains of the fix, in words."""
        return gains_text(self.row)

    @cached_property
    def _places(self) -> dict[str, str]:
        """The place of each variant, ``module:function`` or ``module:function@REV``; empty if unclear."""
        with suppress(BadDataError):
            return (
                places_of(self.document, self.page.report.facts.root)
                if self.document
                else {}
            )
        return {}

    @cached_property
    def document(self) -> Document | None:
        """All of it; looked for only where the index knows of a verifier or of evidence."""
        known = self.row.verification or self.page.report.facts.has_verifier(
            self.row.stated
        )
        return self.page.report.facts.document(self.row.stated) if known else None


class ReportPage:
    """The values that the template of the page gets in addition to the report."""

    def __init__(self, report: StatusReport) -> None:
        self.report = report
        self.packed = len(report.status.rows) > MOST_UNPACKED
        # Links are relative to the folder, and a cleaner is made for each resolver.
        self._resolvers: dict[str, Resolve] = {}
        # The place of a document on the page is its ID, with a number where several share one. An ID that
        # stands for a file's name may have white space, and what is no text.
        seen: Counter[str] = Counter()
        self.anchors: list[str] = []
        for row in report.status.rows:
            name = "-".join(row.id.encode(errors="replace").decode().split())
            seen[name] += 1
            self.anchors.append(name if seen[name] == 1 else f"{name}~{seen[name]}")
        placed = list(zip(report.status.rows, self.anchors, strict=True))
        # Of documents that share an ID the first one is meant.
        self.by_id = {row.id.casefold(): anchor for row, anchor in reversed(placed)}
        self.by_path = {row.path: anchor for row, anchor in placed}

    def resolver(self, path: str) -> Resolve:
        """Leads the links of the document at ``path`` to other documents of the page, or nowhere."""
        folder = posixpath.dirname(path)

        def resolve(address: str) -> str | None:
            file = unquote(address.partition("#")[0].partition("?")[0])
            anchor = self.by_path.get(posixpath.normpath(posixpath.join(folder, file)))
            return f"#{anchor}" if anchor and file else None

        return self._resolvers.setdefault(folder, resolve)

    def sections(self) -> Iterator[DocumentSection]:
        """Every document, in the order of the report."""
        for row, anchor in zip(self.report.status.rows, self.anchors, strict=True):
            yield DocumentSection(self, row, anchor)

    def packs(self) -> Iterator[list[DocumentSection]]:
        """The documents, as many at a time as are packed together."""
        sections = self.sections()
        return iter(lambda: list(islice(sections, LIMITS["pack"])), [])


def write_report(report: StatusReport) -> Iterator[str]:
    """Yield the page piece by piece. A content security policy allows only its own style and script.

    Raises:
        UsageError: The template does not exist.
        BadDataError: A template is wrong, or its style or script would end early.
    """
    texts = []
    for name, end in (("report.css", "</style"), ("report.js", "</script")):
        text = source(name, report.templates)
        # Either would end the element that the text stands in.
        if end in text.lower() or "<!--" in text:
            raise BadDataError(
                f"template {name}: neither {end}> nor <!-- may be part of it"
            )
        texts.append(text)
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in texts
    )
    context = {
        "report": report,
        "status": report.status,
        "page": ReportPage(report),
        "pack": pack,
        "laws_of": laws_of,
        "limits": LIMITS,
        # Both are files of the tool's or of the register's owner.
        "style": Markup(texts[0]),  # noqa: S704
        "script": Markup(texts[1]),  # noqa: S704
        "policy": f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; "
        "base-uri 'none'; form-action 'none'",
    }
    # A path may have bytes that are no text.
    pieces = render_pieces(report.template, context, report.templates)
    return (piece.encode(errors="replace").decode() for piece in pieces)


def laws_of(row: ReportRow) -> list[tuple[str, str, str]]:
    """Each metric with what was measured before and after the fix, and the claim where that says else."""
    measured, claimed = (
        {change.metric: change.text.replace("->", "\u2192") for change in each}
        for each in (row.changes, row.claimed)
    )
    rows = []
    for metric in {**measured, **claimed}:
        law, claim = measured.get(metric, ""), claimed.get(metric, "")
        rows.append((metric, law, claim if claim != law else ""))
    return rows


def pack(text: str) -> str:
    """A text as the page's script unpacks it: zlib's format in base 64."""
    return base64.b64encode(
        zlib.compress(text.encode(errors="replace"), _LEVEL)
    ).decode()
