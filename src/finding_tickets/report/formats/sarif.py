"""SARIF 2.1.0, the format of code scanning services: problems of lint and of budgets, and reports.

GitHub's code scanning looks neither at the kind of a result nor at suppressions, and knows a result again by
``primaryLocationLineHash`` alone. So a report has only what is to be an alert, and that fingerprint tells the
ticket.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from os.path import (
    isfile,
)  # which says of a file that nobody may look at that it is none
from typing import Any, NamedTuple
from urllib.parse import quote

from finding_tickets.ground import __version__
from finding_tickets.ground.files import inside_repository
from finding_tickets.lint.page import reasons
from finding_tickets.lint.rules import RULES
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.report.rows import ReportRow
from finding_tickets.report.status import STEPS, StatusReport
from finding_tickets.report.text import fields_of

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# The name, usual in SARIF, of the folder that all paths are relative to.
ROOT = "%SRCROOT%"
# Results of a run that GitHub keeps.
MOST_ALERTS = 5000
# The level of each verdict and what it means, in the order of the rules.
VERDICTS = {
    Verdict.FAILED: (
        "error",
        "The finding holds, and its fix does not do what is claimed.",
    ),
    Verdict.REFUTED: ("warning", "The code does not do what the finding says."),
    Verdict.REPRODUCED: (
        "warning",
        "The finding is measured, and there is no fix yet.",
    ),
    Verdict.INCONCLUSIVE: ("note", "It could not be measured."),
    Verdict.STALE: (
        "note",
        "Something that the measurement depends on has changed since.",
    ),
    Verdict.UNVERIFIED: ("note", "It was not measured."),
}


class CodePlace(NamedTuple):
    """A file from the register's root, and its lines from 1 where they are known."""

    file: str
    first: int | None = None
    last: int | None = None


def code_of(report: StatusReport, row: ReportRow) -> CodePlace:
    """The first place in code that a document names and this repository has, else the document itself."""
    root = report.facts.root
    # A row knows nothing of lines; few documents have to be opened for them.
    here = [
        file
        for file in row.stated.files
        if inside_repository(file) and isfile(root / file)  # noqa: PTH113
    ]
    document = report.facts.document(row.stated) if here else None
    for location in document.locations if document else ():
        if location.file in here:
            first = (
                location.lines[0]
                if location.lines and location.lines[0].first
                else None
            )
            return CodePlace(
                location.file, *((first.first, first.last) if first else ())
            )
    return CodePlace(row.path)


def lint_log(problems: Iterable[Problem]) -> dict[str, Any]:
    """A log of one run of lint: a result for each problem, and every rule, also those that found nothing."""
    rules = []
    for name, rule in sorted(RULES.items()):
        reason = reasons()[name].replace("`", "")
        tags = [
            *(["bad-data"] if rule.bad_data else []),
            *(["fixable"] if rule.fixable else []),
        ]
        rules.append(
            {
                "id": rule.id,
                "shortDescription": {
                    "text": reason.partition(". ")[0].removesuffix(".") + "."
                },
                "fullDescription": {"text": reason},
                "help": {"text": reason, "markdown": reasons()[name]},
                "defaultConfiguration": {"level": rule.level.value},
                "properties": {"tags": tags},
            }
        )
    return problem_log(problems, rules)


def problem_log(
    problems: Iterable[Problem], rules: list[dict[str, Any]]
) -> dict[str, Any]:
    """A log of one run with a result for each problem; ``rules`` are all that there could be."""
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    log = _log(rules)
    for problem in problems:
        location = _location(CodePlace(problem.file, problem.line))
        location["physicalLocation"]["region"]["startColumn"] = problem.column
        log["runs"][0]["results"].append(
            {
                "ruleId": problem.rule,
                **({"ruleIndex": index[problem.rule]} if problem.rule in index else {}),
                "level": problem.level.value,
                "message": {"text": problem.said},
                "locations": [location],
            }
        )
    return log


def write_report(report: StatusReport) -> Iterator[str]:
    """A report as one run; its results are the open work, the worst first."""
    alerts = report.status.alerts
    left_out = len(alerts[MOST_ALERTS:])
    said = (
        f"{left_out} results are left out: {MOST_ALERTS} are kept, the worst of them."
    )
    notes = [{"level": "warning", "message": {"text": said}}] if left_out else []
    rules = [
        {
            "id": verdict.value,
            "shortDescription": {"text": meaning},
            "help": {"text": f"What to do: {STEPS[verdict]}."},
            "defaultConfiguration": {"level": level},
        }
        for verdict, (level, meaning) in VERDICTS.items()
    ]
    invocations = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    # The results come last, so that they can be written one by one.
    before, after = json.dumps(_log(rules, invocations=invocations), indent=1).rsplit(
        "[]", 1
    )
    yield f"{before}["
    for at, work in enumerate(alerts[:MOST_ALERTS]):
        yield f"{',' if at else ''}\n{json.dumps(_result(work.row, report))}"
    yield f"]{after}\n"


def _log(rules: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A log of one run without results. Columns count characters, from 1."""
    run = {
        "tool": {"driver": {"name": "tickets", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            ROOT: {"description": {"text": "The root of the register."}}
        },
        **more,
        "results": [],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(row: ReportRow, report: StatusReport) -> dict[str, Any]:
    level, meaning = VERDICTS[row.verdict]
    place = code_of(report, row)
    # GitHub takes no place without a line.
    place = place if place.first else place._replace(first=1)
    digest = hashlib.sha256(
        row.id.upper().encode(errors="backslashreplace")
    ).hexdigest()
    text = f"{row.id}: {row.title}. {row.reason or meaning}"
    ticket = {
        **_location(CodePlace(row.path)),
        "id": 1,
        "message": {"text": "The ticket."},
    }
    return {
        "ruleId": row.verdict.value,
        "ruleIndex": list(VERDICTS).index(row.verdict),
        "level": level,
        # Nothing in the text is a link to a place or an address.
        "message": {"text": " ".join(text.split()).replace("](", "] (")},
        "locations": [_location(place)],
        "relatedLocations": [ticket],
        "partialFingerprints": {
            "ticket/v1": row.id,
            "primaryLocationLineHash": f"{digest[:16]}:1",
        },
        "properties": {
            "ticket": row.id,
            **fields_of(row, "severity", "disposition", "verdict"),
            "laws": {change.metric: change.text for change in row.changes},
        },
    }


def _location(place: CodePlace) -> dict[str, Any]:
    # Any byte of a path may be no text.
    uri = quote(place.file, errors="surrogateescape")
    made: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": ROOT}}
    if place.first:
        last = (
            {"endLine": place.last} if place.last and place.last > place.first else {}
        )
        made["region"] = {"startLine": place.first, **last}
    return {"physicalLocation": made}
