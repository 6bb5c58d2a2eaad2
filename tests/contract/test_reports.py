"""Reports for people and machines, in every format: what they count and list, not how they word it."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from html import unescape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.conftest import digest, wordless

if TYPE_CHECKING:
    from tests.contract.conftest import Frozen, Tool


@pytest.fixture(params=["own", "shared"])
def name(request: pytest.FixtureRequest) -> str:
    """Which register is reported on."""
    return str(request.param)


@pytest.fixture
def root(name: str, request: pytest.FixtureRequest) -> Path:
    """The register that is reported on."""
    folder = request.getfixturevalue(name)
    assert isinstance(folder, Path)
    return folder


def test_json(root: Path, name: str, tool: Tool, frozen: Frozen) -> None:
    """Tables and lists of the status, and an item for each document with every field."""
    answer = tool(root, "report", "--format", "json")
    report = wordless(json.loads(answer.out))
    items = {
        item["id"]: {
            key: value if name == "own" and key not in ("claims", "reviews") else digest(value)
            for key, value in item.items()
        }
        for item in report["data"]
    }
    status: dict[str, Any] = {
        key: value if name == "own" else digest(value) for key, value in report["status"].items()
    }
    envelope = [answer.code, report["schema_version"], report["kind"], sorted(report)]
    frozen(f"report-{name}", "json", {"envelope": envelope, "status": status, "data": items})


def test_csv(root: Path, name: str, tool: Tool, frozen: Frozen) -> None:
    """The header, and a digest for each column of each row."""
    answer = tool(root, "report", "--format", "csv")
    header, *rows = csv.reader(StringIO(answer.out))
    worded = {"reason"}
    shown = {
        row[0]: {
            column: digest(cell) for column, cell in zip(header, row, strict=True) if column not in worded
        }
        for row in rows
    }
    frozen(f"report-{name}", "csv", {"code": answer.code, "header": header, "rows": shown})


def test_sarif(root: Path, name: str, tool: Tool, frozen: Frozen) -> None:
    """The rules, and each result with its place, level and fingerprint."""
    answer = tool(root, "report", "--format", "sarif")
    log = json.loads(answer.out)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    kept = (
        "ruleId",
        "ruleIndex",
        "level",
        "partialFingerprints",
        "properties",
    )
    results = []
    for result in run["results"]:
        places = [
            wordless(place, "snippet")
            for key in ("locations", "relatedLocations")
            for place in result.get(key, [])
        ]
        shown = wordless({key: result[key] for key in kept if key in result})
        results.append(shown | {"places": places})
    shown_results = results if name == "own" else [digest(result) for result in results]
    envelope = {key: log[key] for key in ("version", "$schema")} | {"keys": sorted(run)}
    frozen(
        f"report-{name}",
        "sarif",
        {"code": answer.code, "envelope": envelope, "rules": rules, "results": shown_results},
    )


def test_lint_as_sarif_and_github(root: Path, name: str, tool: Tool, frozen: Frozen) -> None:
    """Problems in SARIF and as workflow commands: rule, level and place of each."""
    (run,) = json.loads(tool(root, "lint", "--format", "sarif").out)["runs"]
    results = [
        [result["ruleId"], result.get("level"), wordless(result["locations"])] for result in run["results"]
    ]
    commands = [line.split("::")[1] for line in tool(root, "lint", "--format", "github").out.splitlines()]
    found = {"sarif": results, "github": [re.sub(r",title=.*", "", command) for command in commands]}
    frozen(
        f"report-{name}", "lint", found if name == "own" else {key: digest(it) for key, it in found.items()}
    )


def test_summary(root: Path, name: str, tool: Tool, frozen: Frozen, tmp_path: Path) -> None:
    """The rows of the summary of a step."""
    summary = tmp_path / "summary.md"
    tool(root, "report", "--summary", str(summary))
    rows = [line.split("|")[1].strip() for line in summary.read_text().splitlines() if line.startswith("|")]
    frozen(f"report-{name}", "summary", rows if name == "own" else digest(rows))


def test_markdown(root: Path, name: str, tool: Tool, frozen: Frozen) -> None:
    """Every ID as often as before, and the numbers of every table."""
    answer = tool(root, "report")
    headings = re.findall(r"^#+ .*$", answer.out, re.MULTILINE)
    numbers = [
        [int(cell) for cell in re.findall(r"(?<=\|) *(\d+) *(?=\|)", line)]
        for line in answer.out.splitlines()
        if line.startswith("|")
    ]
    found = {"code": answer.code, "sections": len(headings), "numbers": [row for row in numbers if row]}
    frozen(f"report-{name}", "markdown", found)


def test_html(root: Path, name: str, tool: Tool, frozen: Frozen) -> None:
    """One page: a section for each document, and a policy that lets nothing else run."""
    answer = tool(root, "report", "--format", "html")
    anchors = sorted(set(re.findall(r'id="([A-Z][A-Z0-9-]+)"', answer.out)))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', answer.out)
    assert policy
    directives = sorted(
        re.sub(r"'sha256-[^']*'", "a digest", part.strip()) for part in unescape(policy[1]).split(";")
    )
    tags = Counter(re.findall(r"<(svg|script|style|iframe|object|embed|form|img|link)\b", answer.out))
    assert not re.search(r'(?:src|href)="https?://[^"]*\.(?:js|css|png|svg|woff2?)"', answer.out)
    found = {"code": answer.code, "anchors": anchors, "policy": directives, "tags": tags}
    frozen(f"report-{name}", "html", found)


def test_a_file_has_what_stdout_has(own: Path, tool: Tool, tmp_path: Path) -> None:
    """``-o FILE`` writes the same bytes, and a query chooses the documents."""
    for form in ("markdown", "json", "csv", "sarif"):
        words = ("report", "verdict:verified", "--format", form)
        printed = tool(own, *words)
        written = tool(own, *words, "-o", str(tmp_path / form))
        assert (0, 0, "") == (printed.code, written.code, written.out)
        assert (tmp_path / form).read_bytes().decode() == printed.out
