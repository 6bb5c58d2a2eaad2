"""What the documentation promises is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from finding_tickets.claims.metrics import CLAIMABLE
from finding_tickets.cli.main import COMMANDS
from finding_tickets.model.vocabulary import SAME_RESULT, Verdict
from finding_tickets.workload import Workload

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "benchmarks/README.md"])
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read(path: str) -> str:
    """The text of a page."""
    return (ROOT / path).read_text(encoding="utf-8")


def first_column(page: str) -> set[str]:
    """Every word in backticks in the first cells of a page's tables."""
    cells = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    return {word for cell in cells for word in re.findall(r"`([a-z0-9_]+)`", cell)}


def run(page: str) -> dict[str, Any]:
    """The names that the first Python block of a page defines."""
    names: dict[str, Any] = {"__name__": "documentation"}
    block = PYTHON.search(read(page))
    assert block is not None
    exec(compile(block[1], page, "exec"), names)  # noqa: S102 - our own documentation
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file of the repository, and every anchor a heading of it."""
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        file = page.parent / target if target else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}


def test_every_test_that_security_names_exists() -> None:
    """Each promise of the page is tried by tests that are there under these names."""
    named = set(re.findall(r"`(test_\w+)`", read("docs/security.md")))
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert named
    assert named <= there, named - there


def test_the_readme_lists_every_command() -> None:
    """The README's table of commands has each one, and no other."""
    documented = re.findall(r"^\| `tickets ((?:budget )?[a-z]+)", read("README.md"), re.MULTILINE)
    assert sorted(COMMANDS) == sorted(documented)


def test_every_metric_is_documented() -> None:
    """docs/metrics.md defines each metric that a claim may name, and no other."""
    assert set(CLAIMABLE) - {SAME_RESULT} == first_column(read("docs/metrics.md"))


def test_every_verdict_is_documented() -> None:
    """docs/concepts.md says when each verdict is given."""
    assert {verdict.value for verdict in Verdict} <= first_column(read("docs/concepts.md"))


def test_the_verifier_of_the_documentation_builds_arguments() -> None:
    """The example in docs/verifiers.md is a workload whose arguments have the sizes of their point."""
    workload = run("docs/verifiers.md")["workload"]
    assert isinstance(workload, Workload)
    for point in workload.sweep:
        (tensors,) = workload.build(point, "cpu", torch.Generator())
        assert [point.size] * point.tensors == [tensor.numel() for tensor in tensors]


def test_the_readme_shows_a_test_that_passes() -> None:
    """The README's example passes once ``build`` and ``step`` are the reader's own."""
    names = run("README.md")
    names["build"] = lambda: torch.nn.Linear(3, 2)
    names["step"] = lambda model: model(torch.ones(1, 3, device="cuda")).sum().backward()
    names["test_clipping_never_waits_for_the_gpu"]()
