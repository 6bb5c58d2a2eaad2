"""``pytest --simcuda --budget``: a suite is held to the lines that may wait."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

# Loaded by a test of its own, what is compiled in them would be taken down with it.
import torch  # noqa: F401
import yaml  # noqa: F401

import simcuda  # noqa: F401

pytest_plugins = ["pytester"]

CODE = '''
"""Code of a team."""
import simcuda
import torch


class Trainer:
    def step(self, loss, log=False):
        """Once read, twice waited for."""
        if log:
            print(loss.item())
        loss.tolist(), loss.cpu()
        torch.cuda.synchronize()


def early(values):
    for _ in []:
        values.numpy()
    return values.numpy()


def unused(values):
    return values.to("cpu")


def logged(loss):
    with simcuda.allowed("logged once"):
        return loss.item()
'''
TESTS = """
import sys
import torch
sys.path.insert(0, "src")
import team

def test_step():
    for _ in range(2):
        team.Trainer().step(torch.ones(3, device="cuda"))
    torch.ones(1, device="cuda").item()

def test_also():
    team.Trainer().step(torch.ones(3, device="cuda"))
    team.logged(torch.ones((), device="cuda"))

def test_early():
    team.early(torch.ones(3))
"""
ALLOWED = """
allow_hits:
- {key: "src/team.py:Trainer.step:tolist", owner: ada, reason: small}
- {key: "src/team.py:Trainer.step:cpu", owner: ada, reason: small}
- {key: "src/team.py:Trainer.step:item", owner: ada, reason: logged}
- {key: "src/team.py:early:numpy:2", owner: bob, reason: on the host}
- {key: "src/team.py:unused:to_cpu", owner: bob, reason: old}
"""
SYNCHRONIZE = '- {key: "src/team.py:Trainer.step:cuda_synchronize", owner: ada, reason: timed}\n'


@pytest.fixture
def repository(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Code, its tests, and an allowlist without one of the lines that wait."""
    # What the tests put there goes with them.
    monkeypatch.setattr("sys.path", [*sys.path])
    for file, text in {"src/team.py": CODE, "tests/test_team.py": TESTS, "allow.yaml": ALLOWED}.items():
        path = pytester.path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return pytester.path


def run(pytester: pytest.Pytester, file: str, *options: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the JSON and the text of a session."""
    options = (*options, "--simcuda", "--budget", file, "--simcuda-report", "report.json", "tests")
    result = pytester.runpytest(*options)
    report = Path("report.json")
    data = json.loads(report.read_text("utf-8"))["data"]["budget"] if report.exists() else {}
    return int(result.ret), data, result.stdout.str() + result.stderr.str()


def statuses(data: dict[str, Any]) -> dict[str, tuple[str, int, list[str]]]:
    """The status, the waits and the tests of each entry."""
    return {
        each["name"].rpartition("team.py:")[2]: (each["status"], each["waits"], each["tests"])
        for each in data["allowed"]
    }


STEP, ALSO, EARLY = (f"tests/test_team.py::test_{name}" for name in ("step", "also", "early"))


@pytest.mark.parametrize(
    "options", [[], pytest.param(["-n", "2"], marks=pytest.mark.slow)], ids=["one process", "two"]
)
@pytest.mark.usefixtures("repository")
def test_a_line_that_nothing_allows_fails_the_session(pytester: pytest.Pytester, options: list[str]) -> None:
    """Although all tests pass; with its text, how often, and the tests that reached it."""
    code, data, said = run(pytester, "allow.yaml", *options)
    assert (1, False) == (code, data["holds"])
    assert "3 passed" in said
    # Two steps in one test and one in another; the wait of the test itself is in a file of tests.
    (line,) = data["refused"]
    assert ("src/team.py", 13, "Trainer.step", "torch.cuda.synchronize()", 3) == (
        *(line[name] for name in ("file", "line", "function", "text")),
        line["waits"],
    )
    assert {STEP, ALSO} == {*line["tests"]}
    assert re.search(
        r"1 line waits and may not:\n +3x  src/team.py:13  torch.cuda.synchronize\(\)  in ", said
    )
    both = ("confirmed", 6)
    found = statuses(data)
    # Both calls of the line are of the same statement, which waits twice in each of three steps.
    assert {both} == {found[f"Trainer.step:{name}"][:2] for name in ("tolist", "cpu")}
    assert {STEP, ALSO} == {*found["Trainer.step:cpu"][2]}
    assert ("not reached", 0, []) == found["Trainer.step:item"]
    assert ("silent", 0, [EARLY]) == found["early:numpy:2"]
    assert ("not reached", 0, []) == found["unused:to_cpu"]
    assert [("logged once", 28, 1)] == [
        (each["reason"], each["line"], each["waits"]) for each in data["regions"]
    ]


def test_where_all_is_allowed_the_session_passes(pytester: pytest.Pytester, repository: Path) -> None:
    """Nothing but results is left behind: no compiled code with calls in it."""
    (repository / "allow.yaml").write_text(ALLOWED + SYNCHRONIZE, encoding="utf-8")
    code, data, said = run(pytester, "allow.yaml", "-v")
    assert (0, True, []) == (code, data["holds"], data["refused"])
    assert "6 allowances: 3 confirmed, 2 not reached, 1 silent" in said
    assert [] == [*(repository / "src").rglob("*.pyc")]
    assert "tickets_reached" not in (repository / "src" / "team.py").read_text("utf-8")


TOML = """
[[budget]]
name = "a"
run = "a.py"
limits = {syncs = "0"}

[[budget.allow]]
file = "src/team.py"
function = "Trainer"
what = ["stream_syncs"]
reason = "training"

[[budget]]
name = "b"
run = "b.py"
limits = {syncs = "0"}

[[budget.allow]]
file = "src/team.py"
text = "torch.cuda.synchronize()"
what = ["syncs"]
reason = "timed"
until = 2001-01-01
"""


def test_budgets_of_a_configuration(pytester: pytest.Pytester, repository: Path) -> None:
    """The union of their allowances; one for another kind of wait, or that has ended, does not allow."""
    (repository / "tickets.toml").write_text(TOML, encoding="utf-8")
    code, data, said = run(pytester, "tickets.toml")
    assert (1, [13]) == (code, [each["line"] for each in data["refused"]])
    # Six reads of three steps; the class also waits for the device three times, which is another kind.
    (trainer, timed) = data["allowed"]
    assert ("confirmed", 9) == (trainer["status"], trainer["waits"])
    assert "not in force" == timed["status"]
    assert "tickets.toml:18  allow src/team.py `torch.cuda.synchronize()`: it ended on 2001-01-01" in said
    (repository / "tickets.toml").write_text(TOML.replace("until = 2001-01-01\n", ""), encoding="utf-8")
    assert 0 == run(pytester, "tickets.toml")[0]


def test_paths_limit_what_has_to_be_allowed(pytester: pytest.Pytester, repository: Path) -> None:
    """Where every budget has some: files of tests count if they are named."""
    for paths, refused in (
        (["lib/"], []),
        (["tests/"], ["tests/test_team.py"]),
        (["src/"], ["src/team.py"] * 2),
    ):
        text = '[[budget]]\nrun = "a.py"\nlimits = {syncs = "0"}\npaths = ' + json.dumps(paths)
        (repository / "tickets.toml").write_text(text, encoding="utf-8")
        code, data, _ = run(pytester, "tickets.toml")
        assert (bool(refused), refused) == (code == 1, [each["file"] for each in data["refused"]])


WRONG = {
    "missing.yaml": (None, "cannot be read"),
    "list.yaml": ("- a\n", "list.yaml:1: is no allowlist"),
    "torn.yaml": ("allow_hits:\n- {key: a\nb", "torn.yaml:3: not YAML"),
    "other.yaml": ("version: 1\n", "other.yaml:1: has neither allow_paths nor allow_hits"),
    "allow.json": ("{}", "is neither tickets.toml, pyproject.toml nor YAML"),
    "pyproject.toml": ("[tool.tickets]\n", "has no budget"),
    "tickets.toml": (
        TOML.replace('text = "torch.cuda.synchronize()"', 'text = "import torch"').replace(
            'run = "b.py"', 'run = "b.py"\nwrong = 1'
        ),
        "tickets.toml:13: unknown key 'wrong'",
    ),
    "ambiguous/tickets.toml": (
        TOML.replace("src/team.py", "a.py"),
        "tickets.toml:18: allow a.py `torch.cuda.synchronize()`: matches 2 places, on lines 1, 2",
    ),
}


@pytest.mark.parametrize("file", WRONG)
def test_bad_files_are_wrong_usage(pytester: pytest.Pytester, repository: Path, file: str) -> None:
    """With the file, and the line if there is one."""
    text, said = WRONG[file]
    (repository / file).parent.mkdir(exist_ok=True)
    (repository / file).parent.joinpath("a.py").write_text("torch.cuda.synchronize()\n" * 2)
    if text is not None:
        (repository / file).write_text(text, encoding="utf-8")
    code, _, printed = run(pytester, file)
    assert pytest.ExitCode.USAGE_ERROR == code
    assert f"--budget: {repository / file}" in printed
    assert said in printed


@pytest.mark.usefixtures("repository")
def test_the_option_needs_simulated_devices(pytester: pytest.Pytester) -> None:
    """Without them nothing is counted."""
    result = pytester.runpytest("--budget", "allow.yaml", "tests")
    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines(["*--budget is for a session with --simcuda"])


def test_keys_that_find_nothing_are_told_with_their_lines(
    pytester: pytest.Pytester, repository: Path
) -> None:
    """The others hold, and the session fails."""
    wrong = {
        "src/team.py:early:numpy:3": "finds nothing; early has 2 calls of this kind",
        "src/team.py:early": "is no key",
        "src/team.py:early:sum": "is no key",
        "src/team.py:early:numpy:x": "'x' is no number",
        "src/gone.py:early:numpy": "there is no file src/gone.py",
        "../team.py:early:numpy": "../team.py leaves the repository",
    }
    lines = [f'- {{key: "{key}", reason: none}}\n' for key in wrong]
    (repository / "allow.yaml").write_text(ALLOWED + SYNCHRONIZE + "".join(lines), encoding="utf-8")
    code, data, _ = run(pytester, "allow.yaml")
    assert (1, []) == (code, data["refused"])
    # After two lines without entries and six entries.
    found = {each["line"]: each["message"] for each in data["problems"]}
    assert [*range(9, 15)] == [*found]
    assert all(said in found[line] for line, said in zip(found, wrong.values(), strict=True))
    assert 6 == len(data["allowed"])


IMPORTED = """
import torch
import team

WAITED = torch.ones(1, device="cuda").item()
"""


def test_imports_are_held_too(pytester: pytest.Pytester, repository: Path) -> None:
    """What a module waits for as a test file imports it; conftest.py is seen as well."""
    (repository / "src" / "late.py").write_text(IMPORTED, encoding="utf-8")
    tests = TESTS.replace("import team\n", "import team, late\n")
    (repository / "tests" / "test_team.py").write_text(tests, encoding="utf-8")
    (repository / "allow.yaml").write_text(ALLOWED + SYNCHRONIZE, encoding="utf-8")
    code, data, _ = run(pytester, "allow.yaml")
    (line,) = data["refused"]
    assert (1, "src/late.py", "", ["tests/test_team.py"]) == (
        code,
        line["file"],
        line["function"],
        line["tests"],
    )
    allowed = ALLOWED + SYNCHRONIZE + '- {key: "src/late.py:<module>:item", reason: once}\n'
    (repository / "allow.yaml").write_text(allowed, encoding="utf-8")
    code, data, _ = run(pytester, "allow.yaml")
    assert (0, ("confirmed", 1)) == (code, statuses(data)["src/late.py:<module>:item"][:2])


def test_what_was_imported_before_is_not_claimed(pytester: pytest.Pytester, repository: Path) -> None:
    """Whether a line ran is not known in a file that was imported before; that it waits is."""
    plugin = "import sys\nsys.path.insert(0, 'src')\nimport team\n"
    (repository / "early_plugin.py").write_text(plugin, encoding="utf-8")
    (repository / "allow.yaml").write_text(ALLOWED + SYNCHRONIZE, encoding="utf-8")
    pytester.syspathinsert()
    code, data, _ = run(pytester, "allow.yaml", "-p", "early_plugin")
    found = {name: status for name, (status, *_) in statuses(data).items()}
    assert (0, "not known", "confirmed") == (code, found["early:numpy:2"], found["Trainer.step:cpu"])


KINDS = {
    "item": "x[0].item()",
    "tolist": "x.tolist()",
    "cpu": "x.cpu()",
    "to_cpu": 'x.to(device="cpu")',
    # The copy in the statement waits.
    "numpy": "x.to(torch.device('cpu')).numpy()",
    "synchronize": "work.synchronize()",
    "cuda_synchronize": "torch.cuda.synchronize()",
}
STATES = ("confirmed", "silent", "not reached")
ON_HOST = """
class Done:
    def synchronize(self):
        pass
"""


def generated(number: int) -> tuple[str, str, str, str]:
    """A function with calls of one kind, the key of its last one, a test, and what comes of the entry."""
    kind = [*KINDS][number % 7]
    state = STATES[number // 7 % 3]
    # A device can only be waited for by waiting for it.
    state = "not reached" if (kind, state) == ("cuda_synchronize", "silent") else state
    calls = 1 + number % 3
    # Those before the last one never run, and differ from it by their place alone.
    body = [f"    if x is None:\n        {KINDS[kind]}"] * (calls - 1)
    if state == "not reached":
        body.append("    return")
    lines = [f"def f{number}(x, work):", *body, f"    {KINDS[kind]}"]
    scope = f"f{number}"
    if number % 2:
        lines = [f"class C{number}:", *(f"    {line}" for text in lines for line in text.splitlines())]
        lines[1] = lines[1].replace("(x", "(self, x")
        scope = f"C{number}.{scope}"
    is_host = state == "silent"
    x = "torch.ones(2)" if is_host else 'torch.ones(2, device="cuda")'
    work = "code.Done()" if is_host else "torch.cuda.Stream()"
    called = f"code.C{number}().f{number}" if number % 2 else f"code.f{number}"
    test = f"def test_{number}():\n    {called}({x}, {work})\n"
    key = f"src/code{number % 8}.py:{scope}:{kind}" + (f":{calls}" if calls > 1 else "")
    return "\n".join(lines) + "\n", key, test.replace("code.", f"code{number % 8}."), state


def test_each_of_80_entries_is_shown_as_what_it_is(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Confirmed, silent or not reached, each with the test that tells."""
    monkeypatch.setattr("sys.path", [*sys.path])
    made = [generated(number) for number in range(80)]
    (pytester.path / "src").mkdir()
    (pytester.path / "tests").mkdir()
    for file in range(8):
        parts = [code for number, (code, *_) in enumerate(made) if number % 8 == file]
        text = "\n\n".join(["import torch\n", ON_HOST, *parts])
        (pytester.path / "src" / f"code{file}.py").write_text(text, encoding="utf-8")
    names = ", ".join(f"code{file}" for file in range(8))
    head = f"import sys\nsys.path.insert(0, 'src')\nimport torch, {names}\n\n"
    tests = head + "\n".join(test for _, _, test, _ in made)
    (pytester.path / "tests" / "test_all.py").write_text(tests, encoding="utf-8")
    keys = "".join(f'- {{key: "{key}", owner: ada, reason: "{key}"}}\n' for _, key, *_ in made)
    (pytester.path / "allow.yaml").write_text(f"allow_hits:\n{keys}", encoding="utf-8")
    code, data, said = run(pytester, "allow.yaml", "-v")
    assert (0, [], []) == (code, data["refused"], data["problems"])
    found = [(each["name"], each["status"], each["waits"], each["tests"]) for each in data["allowed"]]
    expected = [
        (key, state, int(state == "confirmed"), [f"tests/test_all.py::test_{number}"] * (state != STATES[2]))
        for number, (_, key, _, state) in enumerate(made)
    ]
    assert expected == found
    # Of 80 by turns of 7, 28 are the first of the states, 28 the second and 24 the third; four calls wait for
    # the device and are silent nowhere.
    counts = {state: sum(each[1] == state for each in expected) for state in STATES}
    assert {"confirmed": 28, "silent": 24, "not reached": 28} == counts
    assert all(re.search(rf"{state}.* {re.escape(key)} ", said) for key, state, *_ in expected)
