"""Reports as JUnit XML, read back by another program."""

from __future__ import annotations

from hypothesis import given
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from tests.report.conftest import ROWS, claim, report, row

from finding_tickets.model.vocabulary import Verdict
from finding_tickets.report.formats.junit import write_report
from finding_tickets.report.rows import ReportRow


def suites(rows: list[ReportRow]) -> list[TestSuite]:
    """The suites that junitparser reads."""
    return list(JUnitXml.fromstring("".join(write_report(report(rows))).encode()))


def outcomes(suite: TestSuite) -> dict[str, list[str]]:
    """What became of each case of a suite."""
    return {case.name: [type(each).__name__ for each in case.result] for case in suite}


def test_a_case_for_each_claim() -> None:
    """A claim passes when it comes out as expected, be it refuted; one that was not checked is skipped."""
    claims = [
        claim("a"),
        claim("b", holds=False, expect="refuted"),
        claim("c", holds=False),
        claim("d", expect="refuted"),
        claim("e", holds=None),
    ]
    (suite,) = suites([row("T-1", verdict=Verdict.FAILED, claims=claims)])
    assert {
        "measurement": [],
        "fix.a": [],
        "fix.b": [],
        "fix.c": ["Failure"],
        "fix.d": ["Failure"],
        "fix.e": ["Skipped"],
    } == outcomes(suite)
    assert ("T-1", 6, 2, 0, 1) == (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped)
    failed = next(case for case in suite if case.name == "fix.c")
    assert "claimed c, measured c, expected to be holds" == failed.result[0].message
    assert {"verdict": "failed", "severity": "P2", "meter": "It waits"}.items() <= {
        each.name: each.value
        for each in suite.properties()  # type: ignore[no-untyped-call] # junitparser leaves it out
    }.items()


def test_what_could_not_be_measured_is_no_pass() -> None:
    """Inconclusive and unreadable is an error; stale and unverified is skipped, with what has changed."""
    rows = [
        row("T-1", "no device", verdict=Verdict.INCONCLUSIVE, claims=[]),
        row("T-2", problem="cannot be read"),
        row("T-3", verdict=Verdict.STALE, claims=[claim("a")], changed=("code.py",)),
        row("T-4"),
    ]
    cases: list[TestCase] = [case for suite in suites(rows) for case in suite]
    assert ["T-1", "T-2", "T-3", "T-4"] == [case.classname for case in cases]
    found = [case.result[0] for case in cases]
    assert [Error, Error, Skipped, Skipped] == [type(each) for each in found]
    assert ["no device", "cannot be read", "stale: code.py", "unverified"] == [each.message for each in found]


def test_no_documents() -> None:
    """A report on nothing is a document without suites."""
    assert [] == suites([])


@given(ROWS)
def test_any_text_is_xml(rows: list[ReportRow]) -> None:
    """Every document has its suite, whatever it says; the counts are those of its cases."""
    found = suites(rows)
    assert len(rows) == len(found)
    for suite in found:
        kinds = [each for case in suite for each in case.result]
        counted = tuple(sum(isinstance(each, kind) for each in kinds) for kind in (Failure, Error, Skipped))
        assert counted == (suite.failures, suite.errors, suite.skipped)
        assert suite.tests == len(list(suite))
