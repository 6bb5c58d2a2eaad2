"""Rules that look at the code: exact about what is gone, silent about code that is elsewhere."""

from __future__ import annotations

import pytest
from tests.conftest import Repository
from tests.lint.conftest import lint

STEP = """\
def step(model, batch):
    # One forward pass.
    loss = model(
        batch,
        reduce=True,
    )
    if loss.item() > 1:  # waits
        return None
    return loss
"""


def problems(repository: Repository, *code: str, **changes: str) -> list[tuple[str, int]]:
    """Rules and lines of the problems of a ticket that quotes these lines of code."""
    repository.write("src/step.py", STEP)
    block = "\n".join(["```python", *code, "```"])
    repository.ticket(more=f"## Detailed Description\n\n{block}\n", **changes)
    return [(problem.rule, problem.line) for problem in lint(repository.load())]


@pytest.mark.parametrize(
    "changes",
    [{"status": "fixed", "path": "tickets/a/B1-PT-01.md"}, {"rows": "| **Code Repository** | elsewhere |\n"}],
    ids=["fixed", "elsewhere"],
)
def test_code_that_has_changed_or_is_elsewhere(repository: Repository, changes: dict[str, str]) -> None:
    """Of a ticket that was fixed, and of one about another repository, no code is looked up."""
    code = ["# src/step.py:900", "return fast(loss)"]
    found = problems(repository, *code, file="src/gone.py", **changes)
    assert {"closed-without-evidence"} >= {rule for rule, _ in found}


def test_a_bare_folder_of_tickets_holds_no_code(repository: Repository) -> None:
    """Without a repository around them nobody knows where the code is, and no file is missed."""
    text = repository.ticket(file="src/gone.py").read_text()
    repository.write("bare/B1-PT-01.md", text)
    (repository.root / "tickets/B1-PT-01.md").unlink()
    (repository.root / "tickets").rmdir()
    assert [] == [problem.rule for problem in lint(repository.load())]


@pytest.mark.parametrize(
    ("place", "rules"),
    [
        ("src/step.py:9", []),
        ("src/step.py:10", ["missing-line"]),
        ("src/step.py:2-4,12-14", ["missing-line"]),
    ],
)
def test_lines_past_the_end(repository: Repository, place: str, rules: list[str]) -> None:
    """The last of all cited lines is compared with the nine that the file has."""
    assert rules == [rule for rule, _ in problems(repository, file=place)]


def test_a_name_alone_means_a_file_cited_before(repository: Repository) -> None:
    """A file's name without its folder is no missing file where another location has the whole path."""
    repository.write("src/step.py", STEP)
    place = "src/step.py`, `step.py"
    assert [] == [rule for rule, _ in problems(repository, file=place) if rule == "missing-file"]


@pytest.mark.parametrize("path", ["src/*.py", "src/{step,more}.py", "src/<name>.py"])
def test_a_pattern_is_no_file(repository: Repository, path: str) -> None:
    """A location that means many files is not looked for."""
    assert [] == problems(repository, file=path)
