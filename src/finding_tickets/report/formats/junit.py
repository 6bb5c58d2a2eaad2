"""A report as JUnit XML: a suite for each document, a case for its measurement and for each claim."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from finding_tickets.model.vocabulary import Verdict
from finding_tickets.report.rows import ReportRow
from finding_tickets.report.status import StatusReport

NAME = "tickets"
MEASURING = "measurement"
NOT_CURRENT = {Verdict.STALE, Verdict.UNVERIFIED}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_report(report: StatusReport) -> Iterator[str]:
    """The suites, in the order of the documents."""
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="{NAME}">\n'
    for row in report.status.rows:
        # Readers of JUnit rely on the counts of the suite.
        cases = list(_cases(row))
        suite = _element("testsuite", name=row.id, file=row.path, tests=str(len(cases)))
        for count, outcome in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(count, str(sum(case.find(outcome) is not None for case in cases)))
        facts = {"title": row.title, "severity": row.severity, "disposition": row.disposition}
        facts["verdict"] = row.verdict
        if done := row.verification:
            facts |= {"meter": done.meter, "torch": done.torch, "device": done.device}
        properties = _element("properties")
        properties.extend(_element("property", name=name, value=value) for name, value in facts.items())
        suite.append(properties)
        suite.extend(cases)
        yield ET.tostring(suite, encoding="unicode") + "\n"
    yield "</testsuites>\n"


def _cases(row: ReportRow) -> Iterator[ET.Element]:
    """Whether it was measured, and where that still counts, whether each claim came out as expected."""
    problem = row.measured.problem
    measuring = _element("testcase", classname=row.id, name=MEASURING)
    if problem:
        measuring.append(_element("error", message=problem.message, type="evidence"))
    elif row.verdict is Verdict.INCONCLUSIVE:
        reason = row.disagreement or row.reason or str(row.verdict)
        measuring.append(_element("error", message=reason, type=row.verdict))
    elif row.verdict in NOT_CURRENT or row.verification is None:
        changed = f": {', '.join(row.measured.changed)}" if row.measured.changed else ""
        measuring.append(_element("skipped", message=f"{row.verdict}{changed}"))
    yield measuring
    # Outcomes of stale evidence say nothing of the code of today.
    for claim in row.verification.claims if row.verification and row.verdict not in NOT_CURRENT else ():
        case = _element("testcase", classname=row.id, name=claim.id)
        said = f"claimed {claim.claimed}, measured {claim.measured}"
        if claim.holds is None:
            case.append(_element("skipped", message=f"not checked: {said}"))
        # A claim that is expected to be false, and is, passes.
        elif claim.is_surprise:
            failure = _element("failure", message=f"{said}, expected to be {claim.expect}", type="claim")
            failure.text = _clean("\n".join(claim.counterexamples))
            case.append(failure)
        out = _element("system-out")
        why = f"\nwhy:      {claim.why}" if claim.why else ""
        out.text = _clean(f"claimed:  {claim.claimed}\nmeasured: {claim.measured}{why}")
        case.append(out)
        yield case


def _element(tag: str, **attributes: str) -> ET.Element:
    return ET.Element(tag, {name: _clean(value) for name, value in attributes.items()})


def _clean(text: str) -> str:
    """Text without the characters that no XML can have, not even in a reference."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", str(text))
