"""A path that is not there gets a guess from the files that are."""

from __future__ import annotations

import pytest
from tests.conftest import Git, Repository
from tests.lint.conftest import lint

from finding_tickets.lint.worktree import WorkTree

ELSEWHERE = "add a row **Code Repository** where the code lives elsewhere"
REMEDIATION = "## Remediation\n\n```yaml\n{}\nchecklist: [{{item: Count the waits, why: by hand}}]\n```\n"


def hints(repository: Repository) -> dict[str, str | None]:
    """The hints of all problems, by their rules."""
    return {problem.rule: problem.hint for problem in lint(repository.load())}


@pytest.mark.parametrize(
    ("wanted", "guess"),
    [
        ("src/trainer/monitr.py", "src/trainer/monitor.py"),
        ("monitor.py", "src/trainer/monitor.py"),
        ("src/trainer/step_2.py", "src/trainer/step_02.py"),
        ("src/trainer/step_3.py", None),
        ("gone.py", None),
    ],
)
@pytest.mark.parametrize("in_git", [True, False])
def test_what_was_meant(
    repository: Repository, git: Git, wanted: str, guess: str | None, in_git: bool
) -> None:
    """A slip in a name and a lost folder are seen; neither another number nor a deleted file is meant."""
    for name in ("trainer/monitor", "trainer/step_01", "trainer/step_02"):
        repository.write(f"src/{name}.py", "")
    gone = repository.write("src/gone.py", "")
    if in_git:
        git("add", ".")
    else:
        (repository.root / ".git").rename(repository.root / ".no-git")
    gone.unlink()
    assert (guess and f"did you mean {guess}?") == WorkTree(repository.root).files_like(wanted)


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
