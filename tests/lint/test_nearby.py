"""A path that is not there gets a guess from the files that are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.lint.conftest import lint

from finding_tickets.ground import git as own_files
from finding_tickets.lint.worktree import MOST_COMPARED, WorkTree

if TYPE_CHECKING:
    from tests.conftest import Git, Repository

ELSEWHERE = "add a row **Code Repository** where the code lives elsewhere"
REMEDIATION = "## Remediation\n\n```yaml\n{}\nchecklist: [{{item: Count the waits, why: by hand}}]\n```\n"


def hints(repository: Repository) -> dict[str, str | None]:
    """The hints of all problems, by their rules."""
    return {problem.rule: problem.hint for problem in lint(repository.load())}


@pytest.mark.parametrize(
    ("wanted", "guesses"),
    [
        ("src/trainer/monitr.py", ["src/trainer/monitor.py"]),
        ("src/monitor.py", ["src/trainer/monitor.py"]),
        ("monitor.py", ["src/trainer/monitor.py"]),
        ("src/trainr/monitor.py", ["src/trainer/monitor.py"]),
        ("src/trainr/", ["src/trainer"]),
        ("src\\trainer\\Monitor.py", ["src/trainer/monitor.py"]),
        ("src/trainer/step_2.py", ["src/trainer/step_02.py"]),
        ("src/trainer/step_3.py", []),
        ("src/trainer/optimizer.py", []),
        ("src/init.py", []),
    ],
)
@pytest.mark.parametrize("in_git", [True, False])
def test_what_was_meant(
    repository: Repository, git: Git, wanted: str, guesses: list[str], in_git: bool
) -> None:
    """A slip in a name or a folder, a lost folder and other separators are seen, and so is another number."""
    for name in ("monitor", "step_01", "step_02"):
        repository.write(f"src/trainer/{name}.py", "")
    if in_git:
        git("add", ".")
    else:
        (repository.root / ".git").rename(repository.root / ".no-git")
    assert guesses == WorkTree(repository.root).guesses(wanted)


def test_the_likest_of_several_comes_first(repository: Repository) -> None:
    """Of files with one name those with the likest path are named; of more than can be compared, none."""
    for folder in ("src/model", "src/data", "docs/of/something/else"):
        repository.write(f"{folder}/__init__.py", "")
    assert ["src/model/__init__.py", "src/data/__init__.py"] == WorkTree(repository.root).guesses(
        "src/models/__init__.py"
    )
    for number in range(MOST_COMPARED):
        repository.write(f"src/x{number}/__init__.py", "")
    assert [] == WorkTree(repository.root).guesses("src/models/__init__.py")


def test_what_is_ignored_or_deleted_is_no_guess(repository: Repository, git: Git) -> None:
    """Neither a file that git ignores is meant, nor one that git still has and the work tree does not."""
    repository.write(".gitignore", "build/\n")
    repository.write("build/monitor.py", "")
    gone = repository.write("src/monitor.py", "")
    git("add", ".")
    gone.unlink()
    assert [] == WorkTree(repository.root).guesses("monitor.py")


def test_hints_name_the_guess(repository: Repository) -> None:
    """Of a location, a verifier and a variant that are not there, lint names the file that may be meant."""
    repository.write("verifiers/count_waits.py", "")
    named = "verifier: verifiers/count_wait.py\nvariants: {found: 'cod.py:slow'}"
    repository.ticket(file="cude.py", more=REMEDIATION.format(named))
    assert {
        "missing-file": f"did you mean code.py? {ELSEWHERE}",
        "missing-verifier": "did you mean verifiers/count_waits.py?",
        "missing-variant": "did you mean code.py?",
    } == hints(repository)


def test_no_guess_leaves_the_other_hints(repository: Repository) -> None:
    """Where nothing is like it, lint says what else can be done; another ticket's verifier is not like it."""
    repository.write("verifiers/b1_pt_02.py", "")
    more = REMEDIATION.format("variants: {found: 'x.py:slow'}\nclaims: {found: {syncs: 1}}")
    repository.ticket(file="src/gone.py", more=more)
    assert {
        "missing-file": ELSEWHERE,
        "missing-verifier": "tickets new --with-verifier writes one",
        "missing-variant": None,
    } == hints(repository)


@pytest.mark.parametrize(("missing", "listings"), [(0, 0), (3, 1)])
def test_files_are_listed_once_and_only_when_one_is_missing(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, missing: int, listings: int
) -> None:
    """Git is asked for the files once, however many are missing, and not at all where none is."""
    asked: list[str] = []

    def ask(_: object, command: str, *__: str) -> str:
        asked.append(command)
        return "code.py\0"

    monkeypatch.setattr(own_files, "ask", ask)
    for number in range(3):
        repository.ticket(f"B1-PT-0{number}", file="cude.py" if number < missing else "code.py")
    rules = [problem.rule for problem in lint(repository.load())]
    assert ["missing-file"] * missing == rules
    assert ["ls-files"] * listings == asked
