"""SARIF 2.1.0, the format of code scanning services: problems that lint finds, and reports.

GitHub's code scanning looks neither at the kind of a result nor at suppressions, and knows a result again by
``primaryLocationLineHash`` alone: the profile ``github`` has only what is to be an alert there, and has that
fingerprint say which ticket it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

from finding_tickets.ground import __version__
from finding_tickets.lint.rules import RULES
from finding_tickets.lint.rules.page import entry_text, explanations
from finding_tickets.model.problem import Problem
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.report.rows import ReportRow
from finding_tickets.report.status import NEXT_STEP, Profile, StatusReport

VERSION = "2.1.0"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"
"""The name, usual in SARIF, of the folder that all paths are relative to."""
MOST_ALERTS = 5000
"""Results of a run that GitHub keeps."""
LEVELS = {
    Verdict.FAILED: "error",
    Verdict.REFUTED: "warning",
    Verdict.REPRODUCED: "warning",
    Verdict.INCONCLUSIVE: "note",
    Verdict.STALE: "note",
    Verdict.UNVERIFIED: "note",
    Verdict.VERIFIED: "none",
}
MEANING = {
    Verdict.FAILED: "The finding holds, and its fix does not do what is claimed.",
    Verdict.REFUTED: "The code does not do what the finding says.",
    Verdict.REPRODUCED: "The finding is measured, and there is no fix yet.",
    Verdict.INCONCLUSIVE: "It could not be measured.",
    Verdict.STALE: "Something that the measurement depends on has changed since.",
    Verdict.UNVERIFIED: "It was not measured.",
    Verdict.VERIFIED: "What the finding claims of the code and of its fix is measured.",
}
TICKET = "ticket/v1"
GITHUB = "primaryLocationLineHash"
_VERDICTS = list(LEVELS)


class CodePlace(NamedTuple):
    """A file from the register's root, and its lines from 1 where they are known."""

    file: str
    first: int | None = None
    last: int | None = None


def code_of(report: StatusReport, row: ReportRow) -> CodePlace:
    """The first place in code that a document names and this repository has, else the document itself.

    The document is read where there is one, since its row knows nothing of lines.
    """

    def is_here(file: str) -> bool:
        """Whether a path names a file of the repository, and leads nowhere else."""
        path = PurePosixPath(file)
        if path.is_absolute() or ".." in path.parts or not file.isprintable():
            return False
        try:
            return (report.facts.root / path).is_file()
        except (OSError, ValueError):
            return False

    # The row is in the index; few documents have to be opened.
    here = [file for file in row.stated.files if is_here(file)]
    document = report.facts.document(row.stated) if here else None
    for location in document.locations if document else ():
        if location.file in here:
            first = location.lines[0] if location.lines and location.lines[0].first else None
            return CodePlace(location.file, *((first.first, first.last) if first else ()))
    return CodePlace(row.path)


def lint_log(problems: Iterable[Problem]) -> dict[str, Any]:
    """A log of one run of lint: every rule, and a result for each problem."""
    rules = []
    for name in sorted(RULES):
        rule, reason = RULES[name], explanations()[name].reason.replace("`", "")
        tags = [*(["bad-data"] if rule.bad_data else []), *(["fixable"] if rule.fixable else [])]
        # Every rule is listed, so that a service can show those that found nothing.
        rules.append(
            {
                "id": rule.id,
                "shortDescription": {"text": reason.partition(". ")[0].removesuffix(".") + "."},
                "fullDescription": {"text": reason},
                # The help is what the page of rules says of the rule.
                "help": {"text": reason, "markdown": entry_text(rule)},
                "defaultConfiguration": {"level": rule.level.value},
                "properties": {"tags": tags},
            }
        )
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    log = _log(rules)
    for problem in problems:
        hint = f" ({problem.hint})" if problem.hint else ""
        location = _location(CodePlace(problem.file, problem.line))
        # Only lint knows columns.
        location["physicalLocation"]["region"]["startColumn"] = problem.column
        log["runs"][0]["results"].append(
            {
                "ruleId": problem.rule,
                **({"ruleIndex": index[problem.rule]} if problem.rule in index else {}),
                "level": problem.level.value,
                "message": {"text": problem.message + hint},
                "locations": [location],
            }
        )
    return log


def write_sarif(report: StatusReport) -> Iterator[str]:
    """A report as one run; the results of the profile ``github`` are the open work, the worst first."""
    shown: Sequence[ReportRow] = report.rows
    left_out = 0
    if report.profile is Profile.GITHUB:
        # What passed or was settled would be an open alert there.
        alerts = [work.row for work in report.status.alerts]
        shown, left_out = alerts[:MOST_ALERTS], len(alerts[MOST_ALERTS:])
    rules = [
        {
            "id": verdict.value,
            "shortDescription": {"text": MEANING[verdict]},
            "help": {"text": f"What to do: {NEXT_STEP[verdict]}."},
            "defaultConfiguration": {"level": LEVELS[verdict]},
        }
        for verdict in _VERDICTS
    ]
    said = f"{left_out} results are left out: {MOST_ALERTS} are kept, the worst of them."
    notes = [{"level": "warning", "message": {"text": said}}] if left_out else []
    invocations = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    # The results come last, so that they can be written one by one.
    before, after = json.dumps(_log(rules, invocations=invocations), indent=1).rsplit("[]", 1)
    yield f"{before}["
    # Two documents may have one ID, so rows are told apart by what they are.
    is_open = {id(work.row) for work in report.status.open_work}
    for at, row in enumerate(shown):
        made = _result(row, report, is_open=id(row) in is_open)
        yield f"{',' if at else ''}\n{json.dumps(made)}"
    yield f"]{after}\n"


def _log(rules: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A log of one run without results. Columns count characters, from 1."""
    run = {
        "tool": {"driver": {"name": "tickets", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the register."}}},
        **more,
        "results": [],
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _result(row: ReportRow, report: StatusReport, *, is_open: bool) -> dict[str, Any]:
    ticket = CodePlace(row.path)
    place = code_of(report, row)
    fingerprints = {TICKET: row.id}
    standing: dict[str, Any] = {"level": LEVELS[row.verdict]}
    if report.profile is Profile.GITHUB:
        # GitHub takes no place without a line.
        place = place if place.first else place._replace(first=1)
        digest = hashlib.sha256(row.id.upper().encode(errors="backslashreplace")).hexdigest()
        fingerprints[GITHUB] = f"{digest[:16]}:1"
    else:
        # Whether it passed, failed or is not decided, and whether people have decided to leave it so.
        undecided = row.verdict in {Verdict.INCONCLUSIVE, Verdict.STALE, Verdict.UNVERIFIED}
        kind = "pass" if row.verdict is Verdict.VERIFIED else "open" if undecided else "fail"
        if not row.is_finding and kind == "open":
            kind = "informational"
        standing = {"kind": kind, "level": LEVELS[row.verdict] if kind == "fail" else "none"}
        if kind in {"open", "fail"} and not is_open:
            settled = {"kind": "external", "status": "accepted", "justification": row.disposition}
            standing["suppressions"] = [settled]
    text = f"{row.id}: {row.title}. {row.reason or MEANING[row.verdict]}"
    return {
        "ruleId": row.verdict.value,
        "ruleIndex": _VERDICTS.index(row.verdict),
        **standing,
        # Nothing in the text is a link to a place or an address.
        "message": {"text": " ".join(text.split()).replace("](", "] (")},
        "locations": [_location(place)],
        "relatedLocations": [{**_location(ticket), "id": 1, "message": {"text": "The ticket."}}],
        "partialFingerprints": fingerprints,
        "properties": {
            "ticket": row.id,
            "severity": row.severity,
            "disposition": row.disposition,
            "verdict": row.verdict.value,
            "laws": {change.metric: change.text for change in row.changes},
        },
    }


def _location(place: CodePlace) -> dict[str, Any]:
    # Any byte of a path may be no text.
    uri = quote(place.file, errors="surrogateescape")
    made: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": ROOT}}
    if place.first:
        last = {"endLine": place.last} if place.last and place.last > place.first else {}
        made["region"] = {"startLine": place.first, **last}
    return {"physicalLocation": made}
