"""Fingerprints: the same for the same finding wherever its lines are, and another one for another."""

from __future__ import annotations

import json
from typing import Any

from finding_tickets.importers.sarif import read_log

TRAITS = {
    "tool": "t",
    "rule": "R1",
    "path": "a.py",
    "symbol": "f",
    "text": "too long (90 > 88)",
    "code": "x = 1",
}
OTHER = dict.fromkeys(TRAITS, "f1")


def prints(*results: dict[str, Any]) -> list[str]:
    """The fingerprints of results with these traits in place of the usual ones, in one log."""
    runs: list[dict[str, Any]] = []
    for given in results:
        has = {"whole": {}, "partial": {}, "line": 1, **TRAITS, **given}
        result = {
            "ruleId": has["rule"],
            "message": {"text": has["text"]},
            "fingerprints": has["whole"],
            "partialFingerprints": has["partial"],
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": has["path"]},
                        "region": {"startLine": has["line"], "snippet": {"text": has["code"]}},
                    },
                    "logicalLocations": [{"name": has["symbol"]}],
                }
            ],
        }
        tool = {"driver": {"name": has["tool"]}}
        if runs and runs[-1]["tool"] == tool:
            runs[-1]["results"].append(result)
        else:
            runs.append({"tool": tool, "results": [result]})
    log = json.dumps({"version": "2.1.0", "runs": runs}).encode()
    return [found.fingerprint for found in read_log(log, "a.sarif", [])]


def one(**traits: Any) -> str:
    """The fingerprint of a result that is alone in its log."""
    (found,) = prints(traits)
    return found


def test_a_fingerprint_stays_what_it_was() -> None:
    """Tickets in registers are known by it: it does not change with a new version of this tool."""
    assert "sarif:f439d06132112c22cd941d6fe764d7a0" == one()
    assert "sarif:f16acd77ec4f9634985c1a927be092d3" == one(whole={"v1": "abc"})
    assert "sarif:663f8b71100d0cc893ef5f7fda2ba55d" == one(partial={"p": "q"})


def test_a_tools_own_fingerprint_stands_for_the_result_in_any_file() -> None:
    """With a whole fingerprint nothing but the tool and the rule counts beside it."""
    own = {"v1": "abc"}
    moved = one(whole=own, path="b.py", text="else", code="else", symbol="g")
    assert one(whole=own, partial={"p": "q"}) == moved
    assert moved not in {one(whole=own, tool="u"), one(whole=own, rule="R2"), one()}


def test_a_partial_fingerprint_needs_its_file() -> None:
    """The hash of some lines is the same in every copy of them."""
    own = {"primaryLocationLineHash": "abc:1"}
    assert one(partial=own) == one(whole={}, partial=own, text="else", code="else")
    others = {one(partial=own, path="b.py"), one(partial={"primaryLocationLineHash": "abc:2"})}
    assert one(partial=own) not in others


def test_a_sentence_is_no_fingerprint() -> None:
    """Some tools write in its place that the user has to log in, for every result."""
    assert one() == one(whole={"v1": "requires login"}, partial={"v2": ""})


def test_without_fingerprints_numbers_do_not_count() -> None:
    """Numbers in a message count lines, characters or columns; those within names are part of the names."""
    assert {one()} == {one(text="too long (91 > 88)"), one(code="x  =\n1")}
    assert 7 == len({one(), *(one(**{name: value}) for name, value in OTHER.items())})
    # Digits without end take time in proportion to their number, not to its square.
    assert one(text="1" * 10**6 + "a")
    assert one(text="f1") != one(text="f2")


def test_equal_results_are_told_apart_by_their_order() -> None:
    """However far both move."""
    first, second = prints({"line": 3}, {"line": 9})
    assert first != second
    assert [first, second] == prints({"line": 13}, {"line": 19})


def test_a_result_that_is_there_twice_is_one() -> None:
    """Equal results at the same place have the same fingerprint."""
    assert 1 == len(prints({}, {}))
