"""Logs in SARIF: what is read of them, and how one that is wrong is refused, with its place."""

from __future__ import annotations

import json

import pytest

from finding_tickets.errors import BadDataError
from finding_tickets.importers.sarif import read_log

LOG = {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "t"}}, "results": [{"ruleId": "ü"}]}]}
TEXT = json.dumps(LOG, ensure_ascii=False)


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        json.dumps({**LOG, "runs": [*LOG["runs"], {"tool": None, "results": None}]}).encode(),
    ],
    ids=["plain", "byte order mark", "nulls"],
)
def test_a_log_is_read_as_tools_write_it(data: bytes) -> None:
    """A byte order mark, and nulls for what is absent, do no harm."""
    assert [("t", "ü")] == [(found.tool, found.rule) for found in read_log(data, "a.sarif", [])]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.sarif: not JSON: Input data was truncated"),
        (b'{"version": "2.1.0",\n "runs": [}', "a.sarif:2: not JSON: JSON is malformed: invalid character"),
        (b'{"version": "2.1.0",\n "runs": [\n', "a.sarif: not JSON: Input data was truncated"),
        (b'{"version": "2.1.0"} {}', "a.sarif:1: not JSON: JSON is malformed: trailing characters"),
        (b'{"version": "\xff"}', "a.sarif: not JSON: 'utf-8' codec"),
        (b"\xff\xfe{", "a.sarif:1: not JSON: "),
        (b'{"more": ' + b"[" * 100_000, "a.sarif: not JSON: maximum recursion depth"),
        (b"[1]", "a.sarif: not a log in SARIF: expected `object`, got `array`"),
        (
            b'{"version": "2.1.0", "runs": 3}',
            "a.sarif: not a log in SARIF: runs: expected `array`, got `int`",
        ),
        (b'{"version": "2.1.0"}', "a.sarif: not a log in SARIF: it has no runs"),
        (b'{"runs": []}', "a.sarif: not a log in SARIF 2.1.0: it states no version"),
        (b'{"version": "2.0.0", "runs": []}', "a.sarif: not a log in SARIF 2.1.0: it states version 2.0.0"),
        (
            b'{"version": "2.1.0", "runs": [\n{}, {"tool": []}]}',
            "a.sarif: not a log in SARIF: runs[1].tool: expected `object`, got `array`",
        ),
        (
            b'{"version": "2.1.0", "runs": [{"results": [\n{},\n{"message": {"text": 4}}]}]}',
            "a.sarif: not a log in SARIF: runs[0].results[1].message.text: expected `str`, got `int`",
        ),
    ],
)
def test_what_is_no_log_is_refused_with_its_place(data: bytes, message: str) -> None:
    """The message has the file, and the line or the path to the value that is wrong."""
    with pytest.raises(BadDataError) as caught:
        read_log(data, "a.sarif", [])
    assert str(caught.value).startswith(message)
