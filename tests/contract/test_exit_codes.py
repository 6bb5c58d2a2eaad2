"""What each command line ends with: a table of what was written, what is run, and the exit code."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.contract.conftest import Tool

HEAD = "# Finding Ticket: {title}\n\n**Ticket ID:** {id}\n**Severity:** P2\n**Status:** {status}\n\n"
BODY = "## Summary\n\nIt waits.\n\n## Verification\n\n- [ ] Count the waits\n- [x] Read the code\n\n"
OPEN = HEAD.format(title="It waits", id="A-1", status="open") + BODY
CLOSED = HEAD.format(title="It copies", id="A-2", status="wont-fix") + BODY
SMALL = {"tickets/A-1.md": OPEN, "tickets/A-2.md": CLOSED, "code.py": "def slow(): ...\n"}
BAD = "tickets/B-1.md"
B1 = HEAD.format(title="Bad", id="B-1", status="open")
YAML = B1 + "## Remediation\n\n```yaml\n{}\n```\n"
LOG = """{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "lint"}}, "results": [
    {"ruleId": "X1", "message": {"text": "slow"}}]}]}"""

Files = dict[str, str | bytes]
# Each row: the files beside those of SMALL, the command line, and the exit code.
READING: dict[str, tuple[Files, str, int]] = {
    "no command": ({}, "", 2),
    "help": ({}, "--help", 0),
    "help of a command": ({}, "verify --help", 0),
    "version": ({}, "--version", 0),
    "an unknown command": ({}, "frobnicate", 2),
    "an unknown option": ({}, "list --frobnicate", 2),
    "an unknown format": ({}, "list --format xml", 2),
    "an unknown column": ({}, "list --columns id,colour", 2),
    "an option without its value": ({}, "list --root", 2),
    "a root that is not there": ({}, "list --root nowhere", 2),
    "a root that is a file": ({}, "list --root code.py", 2),
    "a root without tickets": ({}, "list --root empty", 0),
    "a list": ({}, "list", 0),
    "a list without the index, which is gone": ({}, "list --no-index", 2),
    "a query": ({}, "list status:open severity:>=P2", 0),
    "a list of what is ready": ({}, "list --ready", 0),
    "a list by disposition": ({}, "list --by disposition", 0),
    "a list by disposition of a query": ({}, "list status:open --by disposition", 0),
    "a list by disposition as JSON": ({}, "list --by disposition --format json", 2),
    "a board, which is gone": ({}, "board", 2),
    "a relation, which is gone": ({}, "relate A-1 A-2 --as blocks", 2),
    "a query in another form": ({}, "list severity>=P2", 2),
    "a query that nothing meets": ({}, "list severity:P0", 0),
    "a query with an unknown key": ({}, "list colour:red", 2),
    "a query with an unknown word": ({}, "list severity:P9", 2),
    "a query that does not end": ({}, "list '(status:open'", 2),
    "a query with an unknown order": ({}, "list sort:colour", 2),
    "a query with a wrong date": ({}, "list created:yesteryear", 2),
    "show": ({}, "show a-1", 0),
    "show two": ({}, "show A-1 A-2 --format json", 0),
    "show nothing": ({}, "show", 2),
    "show an unknown ID": ({}, "show A-9", 2),
    "show one that is there and one that is not": ({}, "show A-1 A-9", 2),
    "show the history without git": ({}, "show A-1 --history", 0),
    "a graph": ({}, "graph", 0),
    "a graph of an unknown ID": ({}, "graph A-9", 2),
    "lint": ({}, "lint", 0),
    "lint one rule": ({}, "lint --select one-way-relation", 0),
    "lint an unknown rule": ({}, "lint --select no-such-rule", 2),
    "lint rules": ({}, "lint --rules", 0),
    "a report": ({}, "report", 0),
    "a report in a format that is none": ({}, "report --format pdf", 2),
    "a report with a template that is none": ({}, "report --template none.md.j2", 2),
    "a report with a wrong template": (
        {"templates/a.md.j2": "{{ nothing }}"},
        "report --template a.md.j2",
        4,
    ),
    "a report into a document": ({}, "report -o tickets/A-1.md", 2),
    "a report into a folder": ({}, "report -o tickets", 2),
    "a configuration with an unknown key": ({"tickets.toml": "tikets = 'x'\n"}, "list", 4),
    "a configuration with a wrong type": ({"tickets.toml": "tickets = 4\n"}, "list", 4),
    "a configuration that is no TOML": ({"tickets.toml": "[tool\n"}, "lint", 4),
    "a configured folder that leaves the root": ({"tickets.toml": 'tickets = "../x"\n'}, "list", 4),
    "a configured folder that is not there": ({"tickets.toml": 'tickets = "findings"\n'}, "list", 0),
    "a duplicate ID, listed": ({"tickets/again.md": OPEN}, "list", 0),
    "a duplicate ID, linted": ({"tickets/again.md": OPEN}, "lint", 4),
    "a duplicate ID, shown": ({"tickets/again.md": OPEN}, "show A-1", 4),
    "another than the duplicate, shown": ({"tickets/again.md": OPEN}, "show A-2", 0),
    "a duplicate ID, set": ({"tickets/again.md": OPEN}, "set A-1 severity=P1", 4),
    "an empty file": ({BAD: b""}, "list", 4),
    "a binary file": ({BAD: b"\x89PNG\r\n\x00\x00"}, "lint", 4),
    "a file in Latin-1": ({BAD: "# Größe\n".encode("latin-1")}, "report", 4),
    "a file that is too large": ({BAD: B1 + "x" * 2**20}, "list", 4),
    "a merge that is not finished": ({BAD: f"{B1}<<<<<<< HEAD\na\n=======\nb\n>>>>>>> theirs\n"}, "lint", 4),
    "a table with a missing row": ({BAD: f"{B1}| A | B |\n| 1 | 2 |\n"}, "lint", 0),
    "a severity that is none": ({BAD: B1.replace("P2", "urgent")}, "lint", 0),
    "a relation to what is missing": ({BAD: f"{B1}## Related Findings\n\n- X-9: the same\n"}, "lint", 0),
    "a remediation that is no YAML, listed": ({BAD: YAML.format("claims: [1")}, "list", 0),
    "a remediation that is no YAML": ({BAD: YAML.format("claims: [1")}, "lint", 4),
    "a remediation with an unknown key, listed": ({BAD: YAML.format("clams: {}")}, "list", 0),
    "a remediation with an unknown key": ({BAD: YAML.format("clams: {}")}, "lint", 4),
    "a verifier outside the repository": ({BAD: YAML.format("verifier: ../a.py")}, "lint", 4),
    "a verifier that is not there": ({BAD: YAML.format("verifier: verifiers/a.py")}, "lint", 1),
    "a claim that does not parse, linted": ({BAD: YAML.format("claims: {found: {syncs: 4*}}")}, "lint", 4),
    "a claim that does not parse, listed": ({BAD: YAML.format("claims: {found: {syncs: 4*}}")}, "list", 0),
    "a claim that does not parse, verified": (
        {BAD: YAML.format("claims: {found: {syncs: 4*}}")},
        "verify B-1",
        3,
    ),
    "a claim that does not parse, with a verifier": (
        {BAD: YAML.format("verifier: code.py\nclaims: {found: {syncs: 4*}}")},
        "verify B-1",
        4,
    ),
    "a claim about an unknown metric": ({BAD: YAML.format("claims: {found: {sinks: 4}}")}, "lint", 4),
    "a claim about a time by itself": ({BAD: YAML.format("claims: {fix: {seconds: <= 1}}")}, "lint", 4),
    "what closes a ticket without evidence": ({BAD: B1.replace("open", "fixed")}, "lint", 0),
    "verify nothing": ({}, "verify", 2),
    "verify an unknown ID": ({}, "verify A-9", 2),
    "verify what has no verifier": ({}, "verify A-1", 3),
    "verify all where none has a verifier": ({}, "verify --all", 0),
    "verify with an unknown meter": ({}, "verify A-1 --meter gpu", 2),
    "verify without time": ({}, "verify A-1 --timeout 0", 2),
    "verify at a revision without git": ({}, "verify A-1 --at HEAD", 3),
    "verify with two choices": ({}, "verify A-1 --all", 2),
    "check without a base": ({}, "check", 2),
    "check without git": ({}, "check --base main", 2),
    "audit nothing": ({}, "audit", 2),
    "audit an unknown cheat": ({}, "audit A-1 --cheat none", 2),
    "probe what is not there": ({}, "probe nothing.py", 2),
    "probe with a wrong sweep": ({}, "probe code.py:slow --sweep n=a", 2),
    "probe without a target": ({}, "probe", 2),
    "import a log that is not there": ({}, "import none.sarif --dry-run", 4),
    "import a log that is no JSON": ({"a.sarif": "{"}, "import a.sarif --dry-run", 4),
    "import a log that is no SARIF": ({"a.sarif": "{}"}, "import a.sarif --dry-run", 4),
    "import of another version": ({"a.sarif": LOG.replace("2.1.0", "1.0.0")}, "import a.sarif --dry-run", 4),
    "import, dry": ({"a.sarif": LOG}, "import a.sarif --dry-run", 0),
    "init where there is a configuration": ({"tickets.toml": ""}, "init", 0),
    "init, dry": ({}, "init --dry-run", 0),
    "init where nobody can be asked": ({}, "init", 2),
}
# These may change files. The lines of a row run one after the other; all but the last end in 0.
EDITING: dict[str, tuple[Files, list[str], int]] = {
    "set": ({}, ["set A-1 severity=P1"], 0),
    "set what it is already": ({}, ["set A-1 severity=P2"], 0),
    "set several": ({}, ["set A-1 A-2 severity=P1 assignee=me title=x"], 0),
    "set several, one of which forbids it": ({}, ["set A-1 A-2 status=investigating"], 2),
    "set no ticket": ({}, ["set severity=P1"], 2),
    "add a label and remove it": ({}, ["set A-1 labels=+gpu", "set A-1 labels=-gpu"], 0),
    "remove a label that is not there": ({}, ["set A-1 labels=-gpu"], 2),
    "edit in an editor, which is gone": ({}, ["edit A-1"], 2),
    "set nothing": ({}, ["set A-1"], 2),
    "set without a value": ({}, ["set A-1 severity"], 2),
    "set an unknown key": ({}, ["set A-1 colour=red"], 2),
    "set an unknown word": ({}, ["set A-1 severity=P9"], 2),
    "set an ID": ({}, ["set A-1 id=A-3"], 2),
    "set a wrong date": ({}, ["set A-1 created=31.1.2026"], 2),
    "set an unknown ID": ({}, ["set A-9 severity=P1"], 2),
    "set a status that the states forbid": ({}, ["set A-2 status=investigating"], 2),
    "set a status that closes": ({}, ["set A-1 status=fixed"], 2),
    "set in a dry run": ({}, ["set A-1 severity=P1 --dry-run"], 0),
    "tick": ({}, ["tick A-1 1"], 0),
    "tick what is ticked": ({}, ["tick A-1 2"], 0),
    "tick what is not there": ({}, ["tick A-1 3"], 2),
    "tick item 0": ({}, ["tick A-1 0"], 2),
    "tick nothing": ({}, ["tick A-1"], 2),
    "close as wont-fix": ({}, ["close A-1 --as wont-fix --reason 'runs once'"], 0),
    "close as fixed without a measurement": ({}, ["close A-1 --as fixed"], 1),
    "close as fixed by force without a reason": ({}, ["close A-1 --as fixed --force"], 2),
    "close as fixed by force": ({}, ["close A-1 --as fixed --force --reason 'seen'"], 0),
    "force what needs none": ({}, ["close A-1 --as wont-fix --force --reason x"], 2),
    "close what nothing verifies": ({}, ["close A-1"], 1),
    "close as what is no outcome": ({}, ["close A-1 --as done"], 2),
    "close as a duplicate of nothing": ({}, ["close A-1 --as duplicate"], 2),
    "close as a duplicate of itself": ({}, ["close A-1 --as duplicate --of A-1"], 2),
    "close as a duplicate": ({}, ["close A-1 --as duplicate --of A-2"], 0),
    "close what is closed": ({}, ["close A-2 --as wont-fix"], 2),
    "close twice": ({}, ["close A-1 --as not-a-bug", "close A-1 --as not-a-bug"], 2),
    "open again": ({}, ["set A-2 status=open"], 0),
    "open what is open": ({}, ["set A-1 status=open"], 0),
    "reopen, which is gone": ({}, ["reopen A-2 --reason 'runs twice'"], 2),
    "close and open and close": (
        {},
        ["close A-1 --as wont-fix", "set A-1 status=open", "close A-1 --as not-a-bug"],
        0,
    ),
    "new": ({}, ["new --title 'It waits' --severity P2"], 0),
    "new without a title": ({}, ["new --severity P2"], 2),
    "new with an unknown severity": ({}, ["new --title x --severity P9"], 2),
    "new with a batch below 0": ({}, ["new --title x --severity P2 --batch -1"], 2),
    "new in a series": ({}, ["new --title x --severity P2 --batch 7 --agent pytorch"], 0),
    "new with a verifier": ({}, ["new --title x --severity P2 --with-verifier", "lint"], 0),
    "new from JSON": ({"a.json": '{"title": "x", "severity": "P2"}'}, ["new --from a.json"], 0),
    "new from a list": ({"a.json": '[{"title": "x", "severity": "P2"}]'}, ["new --from a.json"], 0),
    "new from JSON with an unknown key": (
        {"a.json": '{"title": "x", "severity": "P2", "colour": 1}'},
        ["new --from a.json"],
        4,
    ),
    "new from what is no JSON": ({"a.json": "{"}, ["new --from a.json"], 4),
    "new from what is not there": ({}, ["new --from a.json"], 4),
    "import": ({"a.sarif": LOG}, ["import a.sarif"], 0),
    "import twice": ({"a.sarif": LOG}, ["import a.sarif", "import a.sarif"], 0),
    "init": ({}, ["init --yes", "list"], 0),
    "init in pyproject": ({"pyproject.toml": "[project]\nname = 'x'\n"}, ["init --pyproject --yes"], 0),
    "init in a pyproject that is not there": ({}, ["init --pyproject --yes"], 2),
    "init in a wrong pyproject": ({"pyproject.toml": "[project\n"}, ["init --pyproject --yes"], 4),
    "lint fixes": ({BAD: B1.replace("\n\n", "\r\n\n")}, ["lint --fix"], 0),
    "report into a file": ({}, ["report -o out.md", "report --format html -o out.html"], 0),
}
# On a copy of our register, which has evidence.
MEASURED: dict[str, tuple[list[str], int]] = {
    "close as fixed what was verified": (
        ["set B7-PT-02 status=open", "close B7-PT-02 --as fixed", "lint"],
        0,
    ),
    "close as fixed what is refuted": (["close B7-PT-03 --as fixed"], 1),
    "close as fixed what is to be kept": (["close B3-CR-05 --as fixed"], 1),
    "close as wont-fix what is to be kept": (["close B3-CR-05 --as wont-fix"], 0),
    "close a review": (["close TASK-5 --as fixed"], 2),
    "verify what is stale where nothing is": (["verify --stale"], 0),
    "check against a base that is none": (["check --base v9"], 2),
    "verify at a revision that is none": (["verify B7-PT-02 --at v9"], 3),
}


def write(root: Path, files: Files) -> None:
    """Write files below a folder."""
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)


def ends(tool: Tool, root: Path, lines: list[str]) -> list[int]:
    """The exit codes of command lines; none is a bug of the tool."""
    answers = [tool(root, *shlex.split(line)) for line in lines]
    assert not [answer.err for answer in answers if "this is a bug" in answer.err]
    assert all(answer.err for answer in answers if answer.code in (2, 70))
    return [answer.code for answer in answers]


@pytest.mark.parametrize("row", READING)
def test_reading(tmp_path: Path, tool: Tool, row: str) -> None:
    """A command line that writes nothing ends with the exit code of the table."""
    files, line, code = READING[row]
    write(tmp_path, {**SMALL, **files})
    (tmp_path / "empty").mkdir()
    assert [code] == ends(tool, tmp_path, [line])


@pytest.mark.parametrize("row", EDITING)
def test_editing(tmp_path: Path, tool: Tool, row: str) -> None:
    """A command line that may write ends with the exit code of the table; a refusal writes nothing."""
    files, lines, code = EDITING[row]
    write(tmp_path, {**SMALL, **files})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert [*[0] * (len(lines) - 1), code] == ends(tool, tmp_path, lines)
    if code != 0 and len(lines) == 1:
        assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("row", MEASURED)
def test_with_evidence(own: Path, tmp_path: Path, tool: Tool, row: str) -> None:
    """What was measured decides how a command line ends."""
    lines, code = MEASURED[row]
    root = tmp_path / "register"
    shutil.copytree(own, root)
    assert [*[0] * (len(lines) - 1), code] == ends(tool, root, lines)
