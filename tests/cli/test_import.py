"""``tickets import``: a ticket for each finding of another tool, once."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository

LOGS = Path(__file__).parents[1] / "importers/logs"


def result(line: int, text: str = "it waits", **more: object) -> dict[str, Any]:
    """A result in a line of ``code.py``."""
    where = {"artifactLocation": {"uri": "code.py"}, "region": {"startLine": line}}
    return {
        "ruleId": "R1",
        "message": {"text": text},
        "locations": [{"physicalLocation": where}],
        **more,
    }


@pytest.fixture
def log(repository: Repository) -> Callable[..., str]:
    """Write a log of one run with these results, and name its file."""

    def write(results: Sequence[Mapping[str, object]], **run: object) -> str:
        runs = [{"tool": {"driver": {"name": "tool"}}, "results": results, **run}]
        text = json.dumps({"version": "2.1.0", "runs": runs})
        return str(repository.write("a.sarif", text))

    return write


Log = Callable[..., str]


def files(repository: Repository) -> dict[str, bytes]:
    """Every ticket's bytes by its name."""
    return {path.name: path.read_bytes() for path in (repository.root / "tickets").iterdir()}


def test_a_ticket_for_each_finding(tickets: Tickets, repository: Repository, log: Log) -> None:
    """IDs go on where the register's series is, what is left out is counted, and lint has no complaint."""
    repository.ticket("B1-PT-07")
    repository.write("code.py", "x = 1\n" * 9)
    results = [result(1), result(3, "it copies"), result(5, kind="pass")]
    ran = tickets("import", log(results))
    assert 0 == ran.code
    assert [["tickets/B1-PT-08.md", "P2", "code.py:1:"], ["tickets/B1-PT-09.md", "P2", "code.py:3:"]] == [
        line.split()[:3] for line in ran.out.splitlines()[1:]
    ]
    assert "created 2 tickets; 0 known, 1 left out\n" == ran.err
    found = tickets("lint", "--format", "json").data
    assert {"missing-remediation"} == {problem["rule"] for problem in found}
    (item,) = tickets("show", "B1-PT-09", "--format", "json").data
    assert ("it copies", "open", [{"file": "code.py", "lines": [[3, 3]], "symbol": None}]) == (
        item["title"],
        item["status"],
        item["locations"],
    )


def test_a_second_import_changes_nothing(tickets: Tickets, repository: Repository, log: Log) -> None:
    """Not after the tickets were edited, closed, moved and renamed, nor after the lines moved."""
    tickets("import", log([result(1), result(9), result(3, "it copies")]))
    folder = repository.root / "tickets"
    first, _, third = sorted(folder.iterdir())
    first.write_text(first.read_text().replace("it waits", "something else").replace("code.py", "other.py"))
    assert 0 == tickets("close", "T-02", "--as", "wont-fix", "--reason", "so").code
    repository.write("tickets/done/renamed.md", third.read_bytes().replace(b"T-03", b"OLD-9"))
    third.unlink()
    before = {path: path.read_bytes() for path in folder.rglob("*.md")}
    ran = tickets("import", log([result(41), result(49), result(43, "it copies")]))
    assert (0, "", "created 0 tickets; 3 known, 0 left out\n") == (ran.code, ran.out, ran.err)
    assert before == {path: path.read_bytes() for path in folder.rglob("*.md")}


@pytest.mark.slow
def test_imports_at_the_same_time_write_each_ticket_once(repository: Repository, log: Log) -> None:
    """Those that come later wait, and find what the first one has written."""
    file = log([result(line, f"it waits in {name}") for line, name in enumerate("abcdefgh", 1)])
    line = [sys.executable, "-m", "finding_tickets", "import", file, "--root", str(repository.root)]
    started = [
        subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in "123"
    ]
    told = [process.communicate(timeout=120)[1] for process in started]
    assert [0, 0, 0] == [process.returncode for process in started]
    assert 8 == len(files(repository)), told


def test_what_is_new_in_a_later_log_is_added(tickets: Tickets, repository: Repository, log: Log) -> None:
    """Of three findings one is new; the one that the tool reports no more keeps its ticket."""
    tickets("import", log([result(1), result(3, "it copies")]))
    ran = tickets("import", log([result(2, "it grows"), result(7, "it copies")]))
    assert "created 1 ticket; 1 known, 0 left out\n" == ran.err
    assert ["T-01.md", "T-02.md", "T-03.md"] == sorted(files(repository))


def test_paths_of_another_machine(tickets: Tickets, log: Log) -> None:
    """Absolute paths need to be told where the repository was; without that, the user is told so."""
    where = {"artifactLocation": {"uri": "file:///ci/project/code.py"}, "region": {"startLine": 1}}
    file = log([{"message": {"text": "it waits"}, "locations": [{"physicalLocation": where}]}])
    lost = tickets("import", file, "--dry-run")
    assert "1 new ticket without a location: file:///ci/project/code.py is not within" in lost.err
    vague = tickets("import", file, "--source-root", "project")
    assert (2, "error: --source-root project: not an absolute path\n") == (vague.code, vague.err)
    ran = tickets("import", file, "--source-root", "/ci/project")
    assert "without" not in ran.err
    assert ["code.py"] == [
        place["file"] for place in tickets("list", "--format", "json").data[0]["locations"]
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.sarif: not JSON"),
        (b"{", "a.sarif: not JSON"),
        (b"[]", "a.sarif: not a log in SARIF"),
        (b'{"version": "1.0.0", "runs": []}', "Invalid enum value '1.0.0' - at `$.version`"),
    ],
)
def test_bad_logs_are_refused_whole(
    tickets: Tickets, repository: Repository, data: bytes, message: str
) -> None:
    """Nothing is written of a log of which anything is wrong; the message has file and place."""
    ran = tickets("import", str(repository.write("a.sarif", data)))
    assert (4, "", {}) == (ran.code, ran.out, files(repository))
    assert message in ran.err


def test_files_that_are_none(tickets: Tickets, repository: Repository) -> None:
    """A file that is not there and a folder are bad data; no file at all is wrong usage."""
    for name in ("none.sarif", "tickets"):
        ran = tickets("import", str(repository.root / name))
        assert (4, "") == (ran.code, ran.out)
        assert f"{name}: cannot be read" in ran.err
    assert 2 == tickets("import").code


def test_a_ticket_that_cannot_be_read_stops_an_import(
    tickets: Tickets, repository: Repository, log: Log
) -> None:
    """Nobody knows which finding it is about, and a second ticket about one would be wrong."""
    (repository.root / "tickets/T-01.md").symlink_to(repository.root / "nowhere")
    ran = tickets("import", log([result(1)]))
    assert (4, ["T-01.md"]) == (ran.code, [path.name for path in (repository.root / "tickets").iterdir()])
    assert "not known which findings" in ran.err


def test_standard_input(tickets: Tickets, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash is the log on standard input."""
    data = (LOGS / "semgrep.sarif").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert "created 2 tickets; 0 known, 0 left out\n" == tickets("import", "-").err


@pytest.mark.parametrize("name", sorted(path.name for path in LOGS.glob("*.sarif")))
def test_real_logs_twice(tickets: Tickets, repository: Repository, name: str) -> None:
    """What real tools write becomes tickets that lint accepts, once."""
    arguments = ("import", str(LOGS / name), "--source-root", "/home/ci/project")
    first = tickets(*arguments)
    before = files(repository)
    assert (0, True) == (first.code, bool(before))
    assert 0 == tickets("lint").code
    again = tickets(*arguments)
    assert (0, "", before) == (again.code, again.out, files(repository))


def test_ones_own_template_may_leave_the_fingerprint_out(
    tickets: Tickets, repository: Repository, log: Log
) -> None:
    """A template that knows nothing of imports gets it as a comment, so that the finding is known again."""
    plain = (
        "# Finding Ticket: {{ draft.title }}\n\n| Field | Value |\n|---|---|\n| **Ticket ID** | {{ id }} |\n"
    )
    repository.write("templates/ticket.md.j2", plain + "| **Severity** | {{ draft.severity }} |\n")
    tickets("import", log([result(1)]))
    (text,) = files(repository).values()
    assert b"\n<!-- sarif:" in text
    assert "created 0 tickets; 1 known, 0 left out\n" == tickets("import", log([result(1)])).err


REPORT = """\
# Review

### 1. It waits

**Severity:** High
**File:** `code.py:3`

In each step.

### 2. It copies

See `code.py:5`.
"""


def test_a_report_is_shown_before_it_is_written(tickets: Tickets, repository: Repository) -> None:
    """Where nobody can be asked, the plan is all there is, and the exit code says so."""
    report = repository.write("docs/REVIEW.md", REPORT)
    ran = tickets("import", str(report))
    assert (2, {}) == (ran.code, files(repository))
    assert [
        ["tickets/T-01.md", "P1", "code.py:3:", "It", "waits"],
        ["tickets/T-02.md", "-", "code.py:5:", "It", "copies"],
    ] == [line.split() for line in ran.out.splitlines()[1:]]
    assert "without a severity, since the report states none: T-02\n" in ran.err
    dry = tickets("import", str(report), "--dry-run")
    assert (0, ran.out, {}) == (dry.code, dry.out, files(repository))


def test_a_report_becomes_tickets_once(tickets: Tickets, repository: Repository) -> None:
    """Each ticket names the report and its heading; the report stays as it is, and is known the next time."""
    report = repository.write("docs/REVIEW.md", REPORT)
    assert 0 == tickets("import", str(report), "--yes").code
    assert (REPORT, ["T-01.md", "T-02.md"]) == (report.read_text(), sorted(files(repository)))
    assert b"| **Source** | docs/REVIEW.md: 1. It waits |" in files(repository)["T-01.md"]
    before = files(repository)
    again = tickets("import", str(report))
    assert (0, "", "would create 0 tickets; 2 known, 0 left out\n", before) == (
        again.code,
        again.out,
        again.err,
        files(repository),
    )


def test_a_report_without_findings(tickets: Tickets, repository: Repository) -> None:
    """Nothing is written of a text in which nothing looks like a finding."""
    ran = tickets("import", str(repository.write("a.md", "# Notes\n\nWords.\n")), "--yes")
    assert (4, {}) == (ran.code, files(repository))
    assert "nothing in this report looks like a finding" in ran.err
