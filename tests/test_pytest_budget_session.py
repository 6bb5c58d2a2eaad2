"""``pytest --simcuda --budget``: a session is held to the lines that may wait."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

# pytester would unload them again after its first session, and torch cannot be loaded twice.
import simcuda  # noqa: F401

pytest_plugins = ["pytester"]

CODE = """\
import simcuda


class Trainer:
    def step(self, loss, log=False):
        if log:
            print(loss.item())
        return loss.tolist()


def logged(loss):
    with simcuda.allowed("logged once"):
        return loss.item()
"""
TESTS = """\
import sys
import torch
sys.path.insert(0, "src")
import team

def test_step():
    for _ in range(2):
        team.Trainer().step(torch.ones(3, device="cuda"))
    torch.ones(1, device="cuda").item()

def test_also():
    team.Trainer().step(torch.ones((), device="cuda"), log=True)
    team.logged(torch.ones((), device="cuda"))
"""
CONFIG = """\
[[budget]]
run = "tests/test_team.py::test_step"

[[budget.allow]]
file = "src/team.py"
function = "Trainer.step"
code = "return loss.tolist()"
reason = "small"
owner = "ada"
"""


@pytest.fixture
def repository(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Code, its tests, and a configuration that allows one of two lines that wait."""
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    for file, text in {"src/team.py": CODE, "tests/test_team.py": TESTS, "tickets.toml": CONFIG}.items():
        path = pytester.path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return pytester.path


def run(pytester: pytest.Pytester) -> tuple[int, dict[str, Any], str]:
    """Return the exit code, the JSON and the text of a session."""
    options = ("--simcuda", "--budget", "tickets.toml", "--simcuda-report", "report.json")
    result = pytester.runpytest(*options, "tests")
    report = Path("report.json")
    data = json.loads(report.read_text("utf-8"))["data"]["budget"] if report.exists() else {}
    return int(result.ret), data, result.stdout.str() + result.stderr.str()


@pytest.mark.usefixtures("repository")
def test_a_line_that_is_not_allowed_fails_the_session(pytester: pytest.Pytester) -> None:
    """It is reported with a test that reached it; tests themselves, and regions, may wait."""
    code, data, text = run(pytester)
    assert 1 == code
    (refused,) = data["refused"]
    assert ("src/team.py", 7, "print(loss.item())", 1) == tuple(refused.values())[:4]
    assert (
        "src/team.py:7: waits 1x, not allowed: print(loss.item()) (in tests/test_team.py::test_also)" in text
    )
    assert "2 passed" in text


def test_once_all_lines_are_allowed_the_session_passes(pytester: pytest.Pytester, repository: Path) -> None:
    """Nothing is refused then."""
    allowance = CONFIG.partition("\n\n")[2].replace("return loss.tolist()", "print(loss.item())")
    (repository / "tickets.toml").write_text(f"{CONFIG}\n{allowance}")
    code, data, _ = run(pytester)
    assert (0, []) == (code, data["refused"])


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("allow.yaml", "", "is neither tickets.toml nor pyproject.toml"),
        ("tickets.toml", "", "has no budget"),
        ("tickets.toml", '[[budget]]\nname = "x"\n', "missing required field `run`"),
        ("missing.toml", None, "is neither"),
    ],
)
def test_a_file_that_cannot_be_used_ends_the_session(
    pytester: pytest.Pytester, file: str, text: str | None, said: str
) -> None:
    """Before any test runs."""
    if text is not None:
        (pytester.path / file).write_text(text)
    pytester.makepyfile("def test(): pass")
    result = pytester.runpytest("--simcuda", "--budget", file)
    assert pytest.ExitCode.USAGE_ERROR == result.ret
    assert said in result.stderr.str()


def test_a_session_without_devices_has_no_budget(pytester: pytest.Pytester) -> None:
    """Nothing is counted there."""
    pytester.makepyfile("def test(): pass")
    result = pytester.runpytest("--budget", "tickets.toml")
    assert pytest.ExitCode.USAGE_ERROR == result.ret
    assert "--budget is for a session with --simcuda" in result.stderr.str()
