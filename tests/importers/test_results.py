"""Results as findings: rules, messages, severity, places, and what is left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from finding_tickets.errors import BadDataError
from finding_tickets.importers.sarif import SarifFinding, read_log
from finding_tickets.model.vocabulary import Severity

Made = Callable[..., SarifFinding]


def log(*runs: object) -> bytes:
    """A log of these runs."""
    return json.dumps({"version": "2.1.0", "runs": runs}).encode()


def every(*runs: object) -> list[SarifFinding]:
    """What is found in a log of these runs."""
    return read_log(log(*runs), "a.sarif", ["/home/ci/project"])


def one(result: Mapping[str, object], driver: Mapping[str, object] | None = None) -> SarifFinding:
    """The only finding of a run with this result."""
    tool = {"driver": {"name": "t", **(driver or {})}}
    (found,) = every({"tool": tool, "results": [result]})
    return found


RULE = {
    "id": "R1",
    "shortDescription": {"text": "Short."},
    "fullDescription": {"text": "Full."},
    "messageStrings": {"default": {"text": "{1} waits for {0}"}},
    "defaultConfiguration": {"level": "error"},
}
OTHER = {"id": "X/1", "defaultConfiguration": {"level": "note"}}


@pytest.mark.parametrize(
    ("result", "rule", "level"),
    [
        ({"ruleId": "R1"}, "R1", Severity.P1),
        ({"ruleId": "X/1"}, "X/1", Severity.P3),
        ({"ruleId": "none"}, "none", Severity.P2),
        ({}, "", Severity.P2),
        ({"ruleId": "R1", "level": "note"}, "R1", Severity.P3),
        ({"ruleId": "R1", "level": "none"}, "R1", Severity.P4),
        ({"ruleId": "R1", "level": "odd"}, "R1", Severity.P2),
        ({"ruleId": "R1", "kind": "open"}, "R1", Severity.P4),
        ({"ruleId": "R1", "properties": {"security-severity": "9.0"}}, "R1", Severity.P0),
        ({"ruleId": "R1", "properties": {"security-severity": 7}}, "R1", Severity.P1),
        ({"ruleId": "R1", "properties": {"security-severity": "4.0"}}, "R1", Severity.P2),
        ({"ruleId": "R1", "properties": {"security-severity": "3.9"}}, "R1", Severity.P3),
        ({"ruleId": "X/1", "properties": {"security-severity": "high"}}, "X/1", Severity.P3),
        ({"ruleId": "R1", "properties": {"security-severity": "0.0"}}, "R1", Severity.P1),
        # The driver has one rule, the extension another.
        ({"ruleIndex": 0}, "R1", Severity.P1),
        ({"rule": {"index": 0}}, "R1", Severity.P1),
        ({"rule": {"index": 0, "toolComponent": {"index": 0}}}, "X/1", Severity.P3),
        ({"ruleIndex": 7}, "", Severity.P2),
        ({"ruleId": "R1/part"}, "R1/part", Severity.P1),
        ({"ruleId": "Q7/part"}, "Q7/part", Severity.P2),
    ],
)
def test_rule_and_severity(result: Mapping[str, object], rule: str, level: Severity) -> None:
    """A rule is found by its ID, also in an extension; its score or the level makes the severity."""
    tool = {"driver": {"name": "t", "rules": [RULE]}, "extensions": [{"name": "more", "rules": [OTHER]}]}
    (found,) = every({"tool": tool, "results": [result]})
    assert (rule, level) == (found.rule, found.severity)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"text": "plain {0} {{x}}"}, "plain {0} {{x}}"),
        ({"text": "{0} of {1}, {9}", "arguments": ["one", "{0}"]}, "one of {0}, {9}"),
        ({"id": "default", "arguments": ["a", "b"]}, "b waits for a"),
        ({"id": "default"}, "{1} waits for {0}"),
        ({"id": "nowhere"}, "Full."),
        ({}, "Full."),
    ],
)
def test_messages(message: object, expected: str) -> None:
    """A message is a text, or one of the rule's with its gaps filled."""
    assert expected == one({"ruleId": "R1", "message": message}, {"rules": [RULE]}).text


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({"kind": "pass"}, "kind pass"),
        ({"kind": "informational"}, "kind informational"),
        ({"kind": "review"}, ""),
        ({"baselineState": "absent"}, "baseline state absent"),
    ],
)
def test_what_is_left_out(result: Mapping[str, object], why: str) -> None:
    """What passed or is gone makes no ticket."""
    assert why == one(result).left_out


def place(uri: str, **region: int) -> dict[str, Any]:
    """A location."""
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}


@pytest.mark.parametrize(
    ("location", "shown", "symbol"),
    [
        (place("a.py", startLine=3, endLine=5, startColumn=2), "a.py:3", ""),
        (place("a.py", startLine=-3), "a.py", ""),
        (place("file:///elsewhere/a.py", startLine=3), "file:///elsewhere/a.py:3", ""),
        ({"logicalLocations": [{"name": "f", "fullyQualifiedName": "A.f"}]}, "", "A.f"),
        ({"physicalLocation": {"address": {"absoluteAddress": 5}}}, "", ""),
    ],
)
def test_spots(location: object, shown: str, symbol: str) -> None:
    """A place has what the log says of it: file, lines, symbol, or nothing at all."""
    found = one({"locations": [location]})
    assert [(shown, symbol)] == [(str(spot), spot.symbol) for spot in found.spots]


def test_what_some_tools_write_instead() -> None:
    """A file by its number, null for what is left out, a rule by reference, the folder of a service."""
    file = {"artifactLocation": {"index": 0}, "region": {"startLine": 4, "endLine": None}}
    result = {"rule": {"id": "R1"}, "locations": [{"physicalLocation": file}], "level": "Note"}
    artifacts = [{"location": {"uri": "file:///D:/a/app/app/src/a.cs"}}]
    (found,) = every({"artifacts": artifacts, "results": [result]})
    assert ("R1", "src/a.cs:4", Severity.P3) == (found.rule, str(found.spots[0]), found.severity)


def test_runs_that_say_the_same_are_one() -> None:
    """Runs of one tool with several settings find most things again; those of another tool are others."""
    run = {"tool": {"driver": {"name": "t"}}, "results": [{"message": {"text": "x"}}] * 2}
    other = {**run, "tool": {"driver": {"name": "u"}}}
    assert ["t", "u"] == [found.tool for found in every(run, run, other)]


def test_a_log_may_begin_with_a_byte_order_mark_and_have_a_run_that_never_started() -> None:
    """Tools on Windows write the one; the standard has null for the results of the other."""
    failed = {"tool": {"driver": {"name": "t"}}, "results": None}
    assert [] == read_log(b"\xef\xbb\xbf" + log(failed), "a.sarif", [])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"version": "2.1.0", "runs": []} {}', "a.sarif: not JSON: JSON is malformed: trailing characters"),
        (b'{"version": "\xff"}', "a.sarif: not JSON: 'utf-8' codec"),
        (b'{"more": ' + b"[" * 100_000, "a.sarif: not JSON: maximum recursion depth"),
        (
            b'{"version": "2.1.0", "runs": [{"results": [\n{},\n{"message": {"text": 4}}]}]}',
            "a.sarif: not a log in SARIF 2.1.0: Expected `str`, got `int` - at `$.runs[0].results[1].message",
        ),
    ],
)
def test_what_is_no_log_is_refused(data: bytes, message: str) -> None:
    """The message has the file, and the path of a value that is wrong."""
    with pytest.raises(BadDataError) as caught:
        read_log(data, "a.sarif", [])
    assert str(caught.value).startswith(message)
