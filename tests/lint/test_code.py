"""Rules that look at the code: exact about what is gone, silent about code that is elsewhere or restated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.lint.conftest import lint

if TYPE_CHECKING:
    from tests.conftest import Repository

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
# The ticket's own text ends on line 26; the heading below it stands on line 28, the fence on 30.
FENCE = 30


def problems(repository: Repository, *code: str, **changes: str) -> list[tuple[str, int]]:
    """Rules and lines of the problems of a ticket that quotes these lines of code."""
    repository.write("src/step.py", STEP)
    block = "\n".join(["```python", *code, "```"])
    repository.ticket(more=f"## Detailed Description\n\n{block}\n", **changes)
    return [(problem.rule, problem.line) for problem in lint(repository.load())]


@pytest.mark.parametrize(
    "code",
    [
        ["# src/step.py:3-6", "loss = model(batch, reduce=True)"],
        ["# src/step.py:7", "if loss.item() > 1:  # this one waits!"],
        ["# src/step.py", "def step(model, batch):", "    ...", "    # and then", "        return None"],
        ["# /home/ada/repository/src/step.py:9", "return loss"],
        ["# src/step.py:9 (simplified)", "return fast(loss)"],
        ["# src/step.py:9, as it should be", "return fast(loss)"],
        ["# src/gone.py:9", "return fast(loss)"],
        ["return fast(loss)", "# like src/step.py:9", "return fast(loss)"],
    ],
    ids=["wrapped", "commented", "elided", "absolute", "simplified", "proposed", "no file", "mentioned"],
)
def test_what_is_there_or_is_no_quotation(repository: Repository, code: list[str]) -> None:
    """Spacing, comments and elisions do not count, and neither does code that is not said to be in a file."""
    assert [] == [each for each in problems(repository, *code) if each[0] == "quoted-code"]


def test_the_first_line_that_is_gone_is_named(repository: Repository) -> None:
    """Of each piece of a block the first line that its file does not have is found, with its column."""
    code = ["# src/step.py:9", "return loss", "    return slow(loss)", "return slower(loss)"]
    # The comment is on the line below the fence; the second line of code two further.
    assert [("quoted-code", FENCE + 3)] == problems(repository, *code)
    (problem,) = lint(repository.load())
    assert (5, "src/step.py does not have this line (any more): return slow(loss)") == (
        problem.column,
        problem.message,
    )


def test_each_piece_is_looked_up_in_its_file(repository: Repository) -> None:
    """A second place begins a second quotation."""
    repository.write("src/more.py", "more = 1\n")
    code = ["# src/step.py:9", "return loss", "# src/more.py:1", "return loss"]
    assert [("quoted-code", FENCE + 4)] == problems(repository, *code)


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
