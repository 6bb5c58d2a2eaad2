"""A report as SARIF 2.1.0: a result for each document, by its verdict.

GitHub's code scanning looks neither at the kind of a result nor at suppressions, and knows a result again by
``primaryLocationLineHash`` alone: the profile ``github`` has only what is to be an alert there, and has that
fingerprint say which ticket it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from finding_tickets.ground.version import __version__
from finding_tickets.model.verdict import Verdict
from finding_tickets.report.contexts import NEXT_STEP, Profile, Report
from finding_tickets.report.exports.places import Place, code_of
from finding_tickets.report.rows import Row
from finding_tickets.report.sarif import ROOT, SCHEMA, VERSION, artifact

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
_UNDECIDED = {Verdict.INCONCLUSIVE, Verdict.STALE, Verdict.UNVERIFIED}
_VERDICTS = list(LEVELS)


def write(report: Report) -> Iterator[str]:
    """One run; the results of the profile ``github`` are the open work, the worst first."""
    open_work = [work.row for work in report.status.open_work]
    shown: Sequence[Row] = report.rows
    left_out = 0
    if report.profile is Profile.GITHUB:
        alerts = [row for row in open_work if row.verdict is not Verdict.VERIFIED]
        shown, left_out = alerts[:MOST_ALERTS], len(alerts[MOST_ALERTS:])
    head = {"$schema": SCHEMA, "version": VERSION, "runs": [{**_run(left_out), "results": []}]}
    before, after = json.dumps(head, indent=1).rsplit("[]", 1)
    yield f"{before}["
    is_open = {id(row) for row in open_work}
    for at, row in enumerate(shown):
        made = _result(row, report, is_open=id(row) in is_open)
        yield f"{',' if at else ''}\n{json.dumps(made)}"
    yield f"]{after}\n"


def _run(left_out: int) -> dict[str, Any]:
    driver = {"name": "tickets", "version": __version__, "rules": [_rule(verdict) for verdict in _VERDICTS]}
    said = f"{left_out} results are left out: {MOST_ALERTS} are kept, the worst of them."
    notes = [{"level": "warning", "message": {"text": said}}] if left_out else []
    return {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the register."}}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
    }


def _rule(verdict: Verdict) -> dict[str, Any]:
    return {
        "id": verdict.value,
        "shortDescription": {"text": MEANING[verdict]},
        "help": {"text": f"What to do: {NEXT_STEP[verdict]}."},
        "defaultConfiguration": {"level": LEVELS[verdict]},
    }


def _result(row: Row, report: Report, *, is_open: bool) -> dict[str, Any]:
    ticket = Place(row.path)
    place = code_of(report, row) or ticket
    # GitHub takes no place without a line.
    if report.profile is Profile.GITHUB and not place.first:
        place = place._replace(first=1)
    return {
        "ruleId": row.verdict.value,
        "ruleIndex": _VERDICTS.index(row.verdict),
        **_standing(row, report.profile, is_open=is_open),
        "message": {"text": _plain(f"{row.id}: {row.title}. {row.reason or MEANING[row.verdict]}")},
        "locations": [_file(place)],
        "relatedLocations": [{**_file(ticket), "id": 1, "message": {"text": "The ticket."}}],
        "partialFingerprints": _fingerprints(row, report.profile),
        "properties": {
            "ticket": row.id,
            "severity": row.severity,
            "disposition": row.disposition,
            "verdict": row.verdict.value,
            "laws": {change.metric: change.text for change in row.changes},
        },
    }


def _standing(row: Row, profile: Profile, *, is_open: bool) -> dict[str, Any]:
    """Whether a result passed, failed or is not decided, and whether people have decided to leave it so."""
    if profile is Profile.GITHUB:
        return {"level": LEVELS[row.verdict]}
    kind = "pass" if row.verdict is Verdict.VERIFIED else "open" if row.verdict in _UNDECIDED else "fail"
    if not row.is_finding and kind == "open":
        kind = "informational"
    level = LEVELS[row.verdict] if kind == "fail" else "none"
    settled = {"kind": "external", "status": "accepted", "justification": row.disposition}
    suppressed = kind in {"open", "fail"} and not is_open
    return {"kind": kind, "level": level, **({"suppressions": [settled]} if suppressed else {})}


def _fingerprints(row: Row, profile: Profile) -> Mapping[str, str]:
    own = {TICKET: row.id}
    if profile is Profile.FULL:
        return own
    digest = hashlib.sha256(row.id.upper().encode(errors="backslashreplace")).hexdigest()
    return {**own, GITHUB: f"{digest[:16]}:1"}


def _file(place: Place) -> dict[str, Any]:
    made: dict[str, Any] = {"artifactLocation": artifact(place.file)}
    if place.first:
        last = {"endLine": place.last} if place.last and place.last > place.first else {}
        made["region"] = {"startLine": place.first, **last}
    return {"physicalLocation": made}


def _plain(text: str) -> str:
    """A text in which nothing is a link to a place or an address."""
    return " ".join(text.split()).replace("](", "] (")
