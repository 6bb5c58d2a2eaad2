"""What the tool writes anew: tickets, those of an imported log, and the configuration of a register."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.conftest import wordless

if TYPE_CHECKING:
    from tests.contract.conftest import Frozen, Tool

JSON = ("--format", "json")
FULL: dict[str, Any] = {
    "title": "Logging waits for the GPU | *really*",
    "severity": "P1",
    "batch": 7,
    "agent": "pytorch",
    "domains": ["training", "simic/telemetry"],
    "summary": "Each step reads the loss, and waits for it.",
    "description": "A line.\n\nAnother, with `code` and <b>HTML</b>.",
    "recommended_fix": "Read it later.",
    "code_repository": "https://example.org/repository",
    "status": "investigating",
    "locations": [
        {"file": "train.py", "lines": [[10, 20], [30, 30]], "symbol": "step()"},
        {"file": "log.py"},
    ],
    "categories": ["Performance bottleneck"],
    "checklist": ["Count the waits of one step", "Read | the code"],
    "related": [{"id": "B7-PT-01", "relationship": "related", "note": "reads the norm"}],
}
NEW = {
    "the least": ("new", "--title", "It waits", "--severity", "P2"),
    "in a series": ("new", "--title", "It waits", "--severity", "P3", "--batch", "7", "--agent", "pytorch"),
    "with places": (
        *("new", "--title", "It waits", "--severity", "P0", "--summary", "In a sentence."),
        *("--domain", "simic", "--domain", "tolaria", "--category", "Performance bottleneck"),
        *("--file", "src/a.py:10-20", "--file", "src/b.py", "--symbol", "A.step()"),
    ),
    "from JSON": ("new", "--from", "-"),
    "with a verifier": ("new", "--title", "It waits", "--severity", "P2", "--with-verifier"),
}


def result(rule: str, text: str, uri: str, line: int, **more: Any) -> dict[str, Any]:
    """A result of a log, at a line."""
    place = {"artifactLocation": {"uri": uri}, "region": {"startLine": line, "endLine": line + 1}}
    return {"ruleId": rule, "message": {"text": text}, "locations": [{"physicalLocation": place}], **more}


RULES = [
    {
        "id": "X1",
        "shortDescription": {"text": "Too slow"},
        "helpUri": "https://example.org/X1",
        "properties": {"security-severity": "9.1", "tags": ["Performance bottleneck"]},
    },
    {
        "id": "X2",
        "messageStrings": {"default": {"text": "{0} waits"}},
        "defaultConfiguration": {"level": "note"},
    },
]
LOG = {
    "version": "2.1.0",
    "runs": [
        {
            "tool": {"driver": {"name": "slowlint", "version": "1.2", "rules": RULES}},
            "results": [
                result("X1", "a # heading\n| a | table | <script>", "src/a.py", 3),
                result("X1", "a # heading\n| a | table | <script>", "src/a.py", 30),
                result("X2", "unused", "src/b.py", 7, message={"id": "default", "arguments": ["step"]}),
                result("X3", "it passes", "src/a.py", 1, kind="pass"),
                result("X3", "it is gone", "src/a.py", 1, baselineState="absent"),
                result("X3", "it is settled", "src/a.py", 1, suppressions=[{"kind": "inSource"}]),
                result("X3", "it is elsewhere", "../secret.py", 1, level="error"),
                result("X3", "it is known", "src/a.py", 9, fingerprints={"id/v1": "abc"}, level="none"),
            ],
        }
    ],
}


@pytest.fixture
def root(tool: Tool, tmp_path: Path) -> Path:
    """A repository with code and a folder for tickets."""
    for name in ("src/a.py", "src/b.py", "train.py", "log.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(f"x = {number}" for number in range(60)), encoding="utf-8")
    (tmp_path / "tickets").mkdir()
    tool.commit(tmp_path, "Code")
    return tmp_path


def shown(tool: Tool, root: Path, ids: list[str]) -> list[Any]:
    """Documents as they are read again, and what lint has against them."""
    items = tool(root, "show", *ids, *JSON).data
    for item in items:
        # A template words the items that nobody asked for.
        item["checklist"] = [
            each if each["text"] in FULL["checklist"] else each["done"] for each in item["checklist"]
        ]
    problems = [[each["rule"], each["level"]] for each in tool(root, "lint", *JSON).data]
    return [*wordless(items, "item"), {"lint": problems}]


@pytest.mark.parametrize("kind", NEW)
def test_new(tool: Tool, root: Path, frozen: Frozen, kind: str) -> None:
    """A ticket gets the next free ID, states what it was given, and breaks no rule."""
    answers = [tool(root, *NEW[kind], *JSON, stdin=json.dumps(FULL)) for _ in range(2)]
    assert [0, 0] == [answer.code for answer in answers]
    made = [item for answer in answers for item in answer.data]
    frozen("new", kind, {"made": made, "shown": shown(tool, root, [made[0]["id"]])})


def test_import(tool: Tool, root: Path, frozen: Frozen) -> None:
    """Each result of a log becomes a ticket once, or is left out; its words are data."""
    (root / "log.sarif").write_text(json.dumps(LOG), encoding="utf-8")
    words = ("import", "log.sarif", "--batch", "3", "--agent", "slowlint", *JSON)
    outcomes: dict[str, Any] = {}
    for name, more in {"dry": ["--dry-run"], "first": [], "second": []}.items():
        answer = tool(root, *words, *more)
        # Why a result was left out is told in words.
        told = [item | {"why": item["why"] is not None} for item in answer.data]
        outcomes[name] = {"code": answer.code, "results": told}
    frozen("new", "import", outcomes)
    ids = [item["id"] for item in outcomes["first"]["results"] if item["written"]]
    frozen("new", "imported", shown(tool, root, ids))


@pytest.mark.parametrize("pyproject", [False, True])
def test_init(tool: Tool, root: Path, frozen: Frozen, pyproject: bool) -> None:
    """Tickets are found in their folders, and what is written configures a register of them."""
    ticket = "# Finding Ticket: It waits\n\n**Ticket ID:** {}\n**Severity:** P2\n"
    for name in ("findings/fixed/S-1.md", "findings/open/S-2.md", "docs/notes/weird.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(ticket.format(name.rpartition("/")[2][:-3]), encoding="utf-8")
    if pyproject:
        (root / "pyproject.toml").write_text('[project]\nname = "x"', encoding="utf-8")
    tool.commit(root, "Tickets")
    words = ("init", *(["--pyproject"] if pyproject else []), *JSON)
    answers = [tool(root, *words, "--dry-run"), *(tool(root, *words, "--yes") for _ in range(2))]
    said = [wordless(answer.data, "root") for answer in answers]
    file = root / ("pyproject.toml" if pyproject else "tickets.toml")
    settings = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    listed = [item["path"] for item in tool(root, "list", *JSON).data]
    found = {
        "codes": [answer.code for answer in answers],
        "said": said,
        "settings": settings,
        "listed": listed,
        "written": tool.git(root, "status", "--porcelain", "--untracked-files=all").splitlines(),
    }
    frozen("new", f"init in {file.name}", found)
