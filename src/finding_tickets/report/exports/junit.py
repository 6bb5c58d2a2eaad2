"""A report as JUnit XML: a suite for each document, a case for its measurement and for each claim."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from xml.etree import ElementTree as ET

from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult, Verification
from finding_tickets.report.contexts import Report
from finding_tickets.report.rows import Row

NAME = "tickets"
MEASURING = "measurement"
NOT_CURRENT = {Verdict.STALE, Verdict.UNVERIFIED}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(report: Report) -> Iterator[str]:
    """The suites, in the order of the documents."""
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="{NAME}">\n'
    for row in report.rows:
        yield ET.tostring(_suite(row), encoding="unicode") + "\n"
    yield "</testsuites>\n"


def _suite(row: Row) -> ET.Element:
    cases = list(_cases(row))
    counts = {
        "tests": len(cases),
        "failures": _count(cases, "failure"),
        "errors": _count(cases, "error"),
        "skipped": _count(cases, "skipped"),
    }
    suite = _element("testsuite", name=row.id, file=row.path, **{name: str(n) for name, n in counts.items()})
    properties = _element("properties")
    told = {"title": row.title, "severity": row.severity, "disposition": row.disposition}
    told |= {"verdict": row.verdict, **_environment(row.verification)}
    properties.extend(_element("property", name=name, value=value) for name, value in told.items())
    suite.append(properties)
    suite.extend(cases)
    return suite


def _environment(done: Verification | None) -> dict[str, str]:
    return {"meter": done.meter, "torch": done.torch, "device": done.device} if done else {}


def _cases(row: Row) -> Iterator[ET.Element]:
    """Whether it was measured, and where that still counts, whether each claim came out as expected."""
    problem = row.measured.problem
    reason = row.disagreement or row.reason or str(row.verdict)
    if problem:
        yield _case(row, MEASURING, _element("error", message=problem.message, type="evidence"))
    elif row.verdict is Verdict.INCONCLUSIVE:
        yield _case(row, MEASURING, _element("error", message=reason, type=row.verdict))
    elif row.verdict in NOT_CURRENT or row.verification is None:
        yield _case(row, MEASURING, _element("skipped", message=_why(row)))
    else:
        yield _case(row, MEASURING)
    if row.verification and row.verdict not in NOT_CURRENT:
        yield from (_case(row, claim.id, _outcome(claim), _told(claim)) for claim in row.verification.claims)


def _why(row: Row) -> str:
    changed = f": {', '.join(row.measured.changed)}" if row.measured.changed else ""
    return f"{row.verdict}{changed}"


def _case(row: Row, name: str, outcome: ET.Element | None = None, told: Iterable[str] = ()) -> ET.Element:
    case = _element("testcase", classname=row.id, name=name)
    if outcome is not None:
        case.append(outcome)
    if text := "\n".join(told):
        out = _element("system-out")
        out.text = _clean(text)
        case.append(out)
    return case


def _outcome(claim: ClaimResult) -> ET.Element | None:
    """None for a claim that came out as expected, be it refuted."""
    said = f"claimed {claim.claimed}, measured {claim.measured}"
    if claim.holds is None:
        return _element("skipped", message=f"not checked: {said}")
    if claim.as_expected:
        return None
    failure = _element("failure", message=f"{said}, expected to be {claim.expect}", type="claim")
    failure.text = _clean("\n".join(claim.counterexamples))
    return failure


def _told(claim: ClaimResult) -> Iterator[str]:
    yield f"claimed:  {claim.claimed}"
    yield f"measured: {claim.measured}"
    if claim.why:
        yield f"why:      {claim.why}"


def _count(cases: Iterable[ET.Element], outcome: str) -> int:
    return sum(case.find(outcome) is not None for case in cases)


def _element(tag: str, **attributes: str) -> ET.Element:
    return ET.Element(tag, {name: _clean(value) for name, value in attributes.items()})


def _clean(text: str) -> str:
    """Text without the characters that no XML can have, not even in a reference."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", str(text))
