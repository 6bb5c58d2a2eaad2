"""Text of foreign origin: no command and no format lets it steer or forge anything."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pyromark
import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Git, Repository
from tests.verify.conftest import FEW_POINTS, FOUND

from finding_tickets.report.status import ReportFormat
from finding_tickets.report.text import STEERING

# What fits into one line of Markdown, and what an exception and a function may hold beyond it.
LINE = (
    "\x1b[31m\x1b]8;;http://a\x07x\x9b2J\u202eb\u2066 | `c` <img src=x> ](http://b) ![d](e) [f](g) ::error::h"
)
TEXT = f"{LINE}\r\n::error::forged\nerror: forged\n\0\ud800"
FORGED = re.compile(r"^(?:::error::forged|error: forged)", re.MULTILINE)


@pytest.fixture
def planted(repository: Repository, git: Git, tickets: Tickets) -> str:
    """A register on a branch that has the text wherever a file or a run can have it; the base."""
    found = f"{{syncs: {{is: tensors, expect: refuted, why: {json.dumps(LINE)}}}}}"
    claims = f"claims: {{found: {found}, fix: {{syncs: 1}}}}"
    repository.ticket(
        "A-1",
        path="tickets/a \u202e|`<b>.md",
        title=LINE,
        status="fixed",
        rows=f"| **Assigned** | {LINE} |\n| **Related** | A-2 {LINE} |\n",
        file="c\u202e|`.py",
        more=f"## Cross-Review (DRL {LINE})\n\n**Verdict:** ENDORSE\n\n{LINE}\n\n"
        f"## Remediation\n\n```yaml\n{claims}\n```\n",
    )
    repository.write("verifiers/a_1.py", FEW_POINTS.format(ticket="A-1"))
    repository.write("fixes/a_1/found.py", FOUND)
    repository.write("fixes/a_1/fix.py", FOUND)
    git("add", ".")
    git("commit", "--quiet", "-m", LINE, who=LINE.replace("<", "").replace(">", ""))
    git("branch", "b\u202e|`;base")
    repository.write("fixes/a_1/fix.py", f"def check(tensors):\n    raise RuntimeError({TEXT!r})\n")
    assert tickets("verify", "A-1").code in {1, 3}
    git("add", ".")
    git("commit", "--quiet", "-m", "raise")
    return "b\u202e|`;base"


@pytest.mark.slow
def test_no_text_steers_or_forges_anything(planted: str, tickets: Tickets, tmp_path: Path) -> None:
    """Neither a control character comes out, nor a line, a cell, a link, an image or a workflow command."""
    summary = tmp_path / "summary.md"
    lines = [
        ["list"],
        ["list", "--format", "json"],
        ["list", "--by", "disposition"],
        ["show", "A-1", "-v"],
        ["show", "A-1", "--format", "json"],
        ["show", "A-1", "--history"],
        ["lint"],
        ["lint", "--format", "github"],
        ["lint", "--format", "sarif"],
        ["graph"],
        ["graph", "--format", "mermaid"],
        ["verify", "A-1", "--dry-run"],
        ["check", "--base", planted, "--summary", str(summary)],
        ["check", "--base", planted, "--format", "github"],
        ["new", "--title", TEXT.replace("\0", "").replace("\ud800", ""), "--severity", "P2"],
        ["list", LINE],
        ["show", LINE],
        ["verify", LINE],
        ["check", "--base", LINE],
        *(["report", "--format", name] for name in ReportFormat),
    ]
    for line in lines:
        ran = tickets(*line)
        made = (ran.out, ran.err, summary.read_text() if summary.exists() else "")
        assert ran.code in {0, 1, 2, 3, 4}, (line, ran.err)
        for text in made:
            assert not STEERING.search(text), line
            assert not FORGED.search(text), line
        match line[-1]:
            case "json" | "sarif":
                json.loads(ran.out)
            case "csv":
                header, *rows = csv.reader(io.StringIO(ran.out))
                assert all(len(row) == len(header) for row in rows)
            case "markdown":
                page = pyromark.html(ran.out, options=pyromark.Options.ENABLE_TABLES)
                assert not re.search("<(?:img|a|b)\\b", page), line
            case "html":
                assert not re.search("<img\\b", ran.out)
            case "github":
                assert all(re.match("::(?:error|warning|notice)", each) for each in ran.out.splitlines())
    page = pyromark.html(summary.read_text(), options=pyromark.Options.ENABLE_TABLES)
    assert not re.search("<(?:img|a|b)\\b", page)
