"""An implementation review: what each of its sections says of the change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from finding_tickets.documents.finding import read_checklist
from finding_tickets.documents.locations import place_of, read_code, read_locations
from finding_tickets.documents.metadata import Metadata, labels_in, read_header
from finding_tickets.documents.remediation import read_remediation
from finding_tickets.documents.sections import (
    DocumentPart,
    SectionKind,
    nested,
    parts_by_kind,
)
from finding_tickets.documents.source import Excerpt, Values, walk, words_of
from finding_tickets.model.ticket import ImplementationReview

_HASH = re.compile(r"\b[0-9a-f]{7,40}\b")
_NOT_CODE = (SectionKind.REMEDIATION, SectionKind.RESOLUTION)

_VERDICTS = (
    re.compile(r"(?:final |overall |review )*verdict"),
    re.compile(r"(?:final |overall )*(?:assessment|decision|approval)"),
    re.compile(
        r"(?:final |overall )*(?:recommendation|status|result|conclusion|outcome)"
    ),
)
_SAYS_VERDICT = re.compile(
    r"(?i)\W*(?:approve[d]?|ready\b|accept(?:ed|able)?|reject(?:ed)?|changes requested|request changes"
    r"|needs \w+|not ready|blocked|pass(?:ed)?|fail(?:ed)?|lgtm|merge|ship|conditional\w*|complete"
    r"|do not merge)\b",
)
_BEFORE_WORDS = re.compile(r"^[^\w]+")
_OVERALL = [
    "overall",
    "overallscore",
    "qualityscore",
    "score",
    "total",
    "overallrating",
    "overallgrade",
]
_SCORE = re.compile(
    r"(?s)(?P<value>\d+(?:\.\d+)?)\s*(?:/|out of)\s*(?P<out_of>\d+(?:\.\d+)?)\s*(?P<remark>.*)"
)
_TOTAL = re.compile(r"(?im)^[^\w\r\n]*(total\b.*)$")
_FILES = re.compile(
    r"(?:files?|tests?) (?:changed|modified|created|added|deleted|touched|reviewed)|(?:changed|new) files"
)

_PLANNED = re.compile(
    r".*\b(?:plan|requirements?|compliance|specification|spec|acceptance)\b.*"
)
_REQUIREMENT = re.compile(r".*\brequirements?\b.*")
_IN_A_PLAN = re.compile(
    r".*\b(?:requirements?|task|step|item|deliverable|criteri(?:on|a)|planned|plan|spec)\b.*"
)
_STATUS = re.compile(
    r"status|met\??|result|compliance|compliant\??|complete\??|implemented\??|done\??|verdict"
)
_IMPLEMENTATION = re.compile(
    r"(?:actual )?implementation|evidence|notes?|details?|location|how|where|actual|comments?"
)
_MET = re.compile(
    r"[\u2705\u2714\u2713\u2611\U0001f7e2]|(?:yes|y|met|done|pass(?:ed)?|implemented|complete[d]?|satisfied|fully|correct"
    r"|ok|true|verified|added|exceeded|compliant)\b"
)
_UNMET = re.compile(
    r"[\u274c\u2716\u2717\u2718\u2612\U0001f534]|(?:no|n|not|unmet|missing|fail(?:ed)?|absent|incorrect|false)\b(?!/)"
)
_OPEN = re.compile(
    r"[\u26a0\U0001f7e1\u23f3\U0001f536]"
    r"|(?:partial\w*|partly|deferred|n/a|pending|skipped|optional|tbd|in progress)\b"
    r"|[-\u2013\u2014]?$"
)
# In this order: "not met" is no "met", and what is partial is neither.
_ANSWERS = {_OPEN: None, _UNMET: False, _MET: True}
_MARK = re.compile(r"(?s)(?P<sign>[^\w\s*`(\[\"'-]\ufe0f?)\s*(?P<text>.*)")
_ISSUE = re.compile(
    r"(?s)(?:\W*(?P<id>[A-Za-z]+[- ]?\d+|\d+)\W*?\s*[:.)\u2013\u2014-]\s+)?(?P<title>.+)"
)
# Bold words that are neither the label of a value nor say that there is none.
_BOLD = re.compile(
    r"(?si)(?:\d+[.)]\s*)?\*\*(?![ .]*(?:none|n/a)[ .]*\*\*)(?:(?!\*\*).)+(?<!:)\*\*(?!\s*:)"
)
_SEVERITIES = re.compile(
    r"critical|block(?:er|ing)|high|major|important|medium|moderate|minor|low|trivial|nit(?:s|picks)?"
    r"|suggestions?|optional|p[0-4]"
)
_ISSUES = re.compile(
    r"(?:.* )?(?:issues?|suggestions?|findings|concerns|problems|bugs|nits)(?: .*)?"
)


def read_implementation_review(
    sections: Sequence[DocumentPart], metadata: Metadata, title: Excerpt | None
) -> ImplementationReview:
    """Return the review that ``sections`` make up."""
    of_kind = parts_by_kind(sections)
    artifacts = list(_artifacts(sections))
    files = [
        (text, each["name"])
        for text, each in artifacts
        if "file" in each["group"].lower()
    ]
    commits = metadata.get("Commits")
    hashes = _HASH.findall(commits.plain) if commits else []
    if commits and not hashes:
        commits.value.report(
            "commits", f"no commit in {commits.plain!r}", "write abc1234 -> def5678"
        )
    # Every labelled ``9.5/10``.
    entries = [entry for part in sections for entry in part.entries]
    marks = [
        (entry, match) for entry in entries if (match := _SCORE.fullmatch(entry.plain))
    ]
    scores = [
        entry.value.record(
            name="overall" if entry.key in _OVERALL else entry.label,
            value=float(match["value"]),
            out_of=float(match["out_of"]),
            remark=match["remark"].strip("() -\u2013\u2014"),
        )
        for entry, match in marks
        if float(match["out_of"]) > 0
    ]
    issues = list(_issues(sections))
    # A heading "Critical" with NONE below it states a count of 0.
    counts = {part.name.partition(" ")[0]: 0 for part in _severities(sections)}
    for issue in issues:
        counts[issue["severity"]] += 1
    values = {
        **read_header(metadata, title),
        "reviewer": metadata.string("Reviewer"),
        "date": metadata.string("Date"),
        "commits": commits.value.record(
            base=hashes[0] if hashes[1:] else None, head=hashes[-1]
        )
        if commits and hashes
        else None,
        "plan": metadata.string("Plan"),
        "verdict": _verdict(sections),
        "requirements": list(_requirements(sections)),
        "issues": issues,
        "issue_counts": counts,
        "scores": scores,
        "performance_claims": list(_performance_claims(sections)),
        "artifacts": [each for _, each in artifacts],
        "locations": [
            place
            for part in of_kind[SectionKind.LOCATION]
            for place in read_locations(part)
        ]
        or [place for text, name in files for place in place_of(text, name)],
        "evidence": [
            code
            for part in sections
            if part.kind not in _NOT_CODE
            for code in read_code(part)
        ],
        "checklist": [
            item
            for part in of_kind[SectionKind.VERIFICATION]
            for item in read_checklist(part)
        ],
        "remediation": next(
            map(read_remediation, of_kind[SectionKind.REMEDIATION]), None
        ),
        "sections": [part.record() for part in sections],
    }
    return ImplementationReview.model_validate(values)


def _verdict(parts: Sequence[DocumentPart]) -> Values | None:
    """The verdict, without the sign in front of it.

    The best is a label Verdict, then Assessment, then a Recommendation with a word of approval.
    """
    labelled = [entry for part in parts for entry in part.entries if entry.plain]
    texts = [
        entry.value
        for pattern in _VERDICTS
        for entry in labelled
        if pattern.fullmatch(words_of(entry.label))
        and (pattern is not _VERDICTS[-1] or _SAYS_VERDICT.match(entry.plain))
    ]
    return (
        texts[0].record(value=_BEFORE_WORDS.sub("", texts[0].plain)) if texts else None
    )


def _performance_claims(parts: Iterable[DocumentPart]) -> Iterator[Values]:
    """Yield the labelled values of sections on performance, and the totals in their code."""
    for part in (each for each in parts if "performance" in each.name):
        found = [
            (entry.value, f"{entry.label}: {entry.plain}") for entry in part.entries
        ]
        for block in part.by_kind["CodeBlock"]:
            content = part.source.text(block.first, block.last)
            totals = _TOTAL.finditer(content.raw)
            found += [
                (content.piece(*match.span(1)), match[1].strip()) for match in totals
            ]
        for text, words in sorted(found, key=lambda pair: pair[0].start):
            if text.raw:
                yield text.record(text=words)


def _artifacts(parts: Iterable[DocumentPart]) -> Iterator[tuple[Excerpt, Values]]:
    """Yield the artifacts of the change, under the heading of their group."""
    for part in parts:
        if part.name not in ("artifacts", "deliverables") and not _FILES.fullmatch(
            part.name
        ):
            yield from _artifacts(part.parts)
            continue
        for each in nested([part]):
            for block in takewhile(lambda block: not block.level, each.blocks):
                for item in (
                    item for item in walk([block], rows=False) if item.kind == "Item"
                ):
                    # The first code span names the artifact; the rest is a remark.
                    text = part.source.words(item)
                    spans = text.code_spans()
                    name = spans[0].plain if spans else text.plain.partition(" (")[0]
                    remark = text.plain.removeprefix(name).strip(" :\u2013\u2014-")
                    if remark.startswith("(") and remark.endswith(")"):
                        remark = remark[1:-1]
                    yield text, text.record(group=each.title, name=name, remark=remark)


def _requirements(parts: Iterable[DocumentPart]) -> Iterator[Values]:
    """The requirements in the sections that speak of a plan or of requirements, and in tables of them."""
    for part in parts:
        planned = _PLANNED.fullmatch(part.name) is not None
        for block in walk(part.blocks, rows=False):
            if block.kind == "Table":
                table = part.source.table(block)
                requirement = table.column(_REQUIREMENT) or (
                    table.column(_IN_A_PLAN) if planned else None
                )
                status = table.column(_STATUS, requirement)
                # Tables without a status only list what was asked for.
                if requirement is None or status is None:
                    continue
                implementation = table.column(_IMPLEMENTATION, requirement, status)
                for row in table.records:
                    words = row[status].plain.lower()
                    if not any(pattern.match(words) for pattern in _ANSWERS):
                        message = f"cannot tell from {words!r} whether it is met"
                        row[status].report("requirement-status", message)
                    yield table.text_of(row).record(
                        text=row[requirement].plain,
                        implementation=row[implementation].plain
                        if implementation
                        else "",
                        met=_is_met(words),
                    )
            elif block.kind == "Item" and planned:
                text = part.source.words(block)
                mark = _MARK.match(text.plain)
                if mark and any(pattern.match(mark["sign"]) for pattern in _ANSWERS):
                    yield text.record(
                        text=mark["text"],
                        implementation="",
                        met=_is_met(text.plain.lower()),
                    )


def _is_met(words: str) -> bool | None:
    """Return the answer that a status mark or word gives; None where it leaves the question open."""
    return next(
        (met for pattern, met in _ANSWERS.items() if pattern.match(words)), None
    )


def _issues(parts: Iterable[DocumentPart]) -> Iterator[Values]:
    """Every issue, below the heading of its severity; a severity with NONE below it has none."""
    for part in _severities(parts):
        headlines: list[tuple[Excerpt, dict[str, str]]] = []
        for block in part.blocks:
            text = part.source.whole(block)
            if block.kind == "Paragraph" and (bold := _BOLD.match(text.raw)):
                headlines.append((text.piece(0, bold.end()), {}))
            # The labelled items of a list, each with all nested in it.
            details = headlines[-1][1] if headlines else {}
            for item in block.children if block.kind == "List" else ():
                words = part.source.words(item)
                for entry in labels_in(part.source, words):
                    details[entry.label] = part.source.text(
                        entry.value.start, item.end
                    ).plain
        for text, details in headlines:
            if match := _ISSUE.fullmatch(text.plain):
                severity, name = part.name.partition(" ")[0], match["id"] or ""
                yield text.record(
                    severity=severity, id=name, title=match["title"], details=details
                )


def _severities(parts: Iterable[DocumentPart]) -> Iterator[DocumentPart]:
    """Yield the parts that hold the issues of one severity, within a part on issues."""
    for part in parts:
        if part.level <= 1 or not _ISSUES.fullmatch(part.name):
            yield from _severities(part.parts)
        elif "summary" not in part.name.split():
            yield from (
                each
                for each in part.parts
                if _SEVERITIES.fullmatch(each.name.partition(" ")[0])
            )
