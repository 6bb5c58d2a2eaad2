"""The gate of a pull request: scenarios on a repository with a base and a branch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import run_here

from finding_tickets.errors import ExitCode
from finding_tickets.measure.processes.isolation import Isolation

if TYPE_CHECKING:
    from tests.conftest import Git, Repository

VERIFIER = """\
import torch
from verifiers.helper import WIDEST

from finding_tickets.workload import Point, Workload


def build(point, device, generator):
    if not point.tensors:
        raise ValueError("there is no work without tensors")
    size = min(100 * point.tensors, WIDEST)
    return ([torch.rand(size, generator=generator).to(device) for _ in range(point.tensors)],)


workload = Workload(
    ticket="A-1",
    build=build,
    sweep=[Point(tensors=n) for n in (1, 2, 5)],
)
"""
FOUND = """\
def norms(tensors):
    found = []
    for tensor in tensors:
        found.append(tensor.norm().item())
    return found
"""
FIX = """\
import torch


def norms(tensors):
    if not tensors:
        return []
    torch.cuda.synchronize()
    return torch.stack([tensor.norm() for tensor in tensors]).tolist()
"""
READ = "    return torch.stack([tensor.norm() for tensor in tensors]).tolist()\n"
SLOW = "    return [tensor.norm().item() for tensor in tensors]\n"
CLAIMS = "claims: {found: {syncs: tensors}, fix: {syncs: 2, same_result_as: found}}"
BLOCK = f"## Remediation\n\n```yaml\n{CLAIMS}\n```\n"
Check = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the first test leaves a copy of ``base``, which takes long to make."""
    return tmp_path_factory.mktemp("template") / "repository"


@pytest.fixture
def base(repository: Repository, git: Git, template: Path) -> Repository:
    """Two verified tickets, committed on main with their evidence, and a branch that has done nothing."""
    if template.exists():
        copytree(template, repository.root, dirs_exist_ok=True)
        return repository
    for ticket in ("A-1", "B-1"):
        name = ticket.lower().replace("-", "_")
        repository.ticket(ticket, status="fixed", more=BLOCK)
        repository.write(f"verifiers/{name}.py", VERIFIER.replace("A-1", ticket))
        repository.write(f"fixes/{name}/found.py", FOUND)
        repository.write(f"fixes/{name}/fix.py", FIX)
    repository.write("verifiers/helper.py", "WIDEST = 10**9\n")
    repository.write(".gitignore", "__pycache__/\n")
    repository.write("requirements.txt", "numpy==2.0\n")
    ended = run_here(repository.root, "verify", "--all")
    assert ExitCode.OK == ended.code, ended
    git("add", "--all")
    git("commit", "--quiet", "-m", "base")
    git("switch", "--quiet", "--create", "branch")
    copytree(repository.root, template)
    return repository


@pytest.fixture
def check(base: Repository) -> Check:
    """``check("--accept", "A-1")`` returns the exit code, and the problems."""

    def run(*options: str) -> tuple[int, list[dict[str, Any]]]:
        ended = run_here(base.root, "check", "--base", "main", "--format", "json", *options)
        return ended.code, json.loads(ended.out)["problems"] if ended.out else []

    return run


def edit(base: Repository, path: str, old: str, new: str) -> None:
    """Replace a text that a file has."""
    text = (base.root / path).read_text(encoding="utf-8")
    assert old in text
    base.write(path, text.replace(old, new))


def places(problems: list[dict[str, Any]], level: str = "error") -> list[tuple[str, str, int]]:
    """Return rule, file and line of the problems of a level."""
    return [(each["rule"], each["file"], each["line"]) for each in problems if each["level"] == level]


@pytest.mark.slow
def test_a_branch_that_changes_no_input_measures_nothing(
    base: Repository, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upgrade of a dependency that nothing ran opens the gate, and no process is started for it."""
    monkeypatch.setattr(Isolation, "run", lambda *_: pytest.fail("something was to be measured"))
    base.write("requirements.txt", "numpy==2.1\n")
    base.write("readme.txt", "words\n")
    assert (0, []) == check()
    ended = run_here(base.root, "check", "--base", "main")
    assert (0, "") == (ended.code, ended.out)


@pytest.mark.slow
def test_a_file_that_is_back_as_it_was_measured_is_measured(base: Repository, check: Check, git: Git) -> None:
    """Evidence is of all files together: with the others of today it may be too much."""
    git("switch", "--quiet", "main")
    base.write("work.py", "WAITS = 1\n")
    edit(base, "fixes/a_1/fix.py", "import torch\n", "import torch\nfrom work import WAITS\n")
    edit(base, "fixes/a_1/fix.py", "    torch.cuda", "    for _ in range(WAITS):\n        torch.cuda")
    assert ExitCode.OK == run_here(base.root, "verify", "A-1").code
    git("add", "--all")
    git("commit", "--quiet", "-m", "measured")
    base.write("work.py", "WAITS = 0\n")
    edit(base, "fixes/a_1/fix.py", "(WAITS)", "(WAITS + 1)")
    git("commit", "--quiet", "--all", "-m", "another way")
    git("switch", "--quiet", "--force-create", "branch")
    base.write("work.py", "WAITS = 1\n")
    code, problems = check()
    assert (1, ["gate-worse"]) == (code, [rule for rule, *_ in places(problems)]), problems


def test_a_wait_put_back_is_one_message_at_its_line(base: Repository, check: Check) -> None:
    """However many claims it breaks; nothing of the ticket has changed that could be accepted."""
    edit(base, "fixes/a_1/fix.py", READ, SLOW)
    code, problems = check()
    assert (1, [("gate-worse", "fixes/a_1/fix.py", 8)]) == (code, places(problems))
    message = problems[0]["message"]
    assert message.startswith("A-1: fix.syncs is claimed to be 2, and is ")
    assert message.endswith(": return [tensor.norm().item() for tensor in tensors]")


@pytest.mark.slow
def test_an_honest_branch_passes(base: Repository, check: Check) -> None:
    """Comments of the verifier, names in the fix, words of the ticket and a claim more change no rule."""
    edit(base, "verifiers/a_1.py", "workload = ", "# The work\nworkload = ")
    edit(base, "fixes/a_1/fix.py", "tensors", "values")
    edit(base, "tickets/A-1.md", "syncs: 2,", "syncs: 2, h2d: 0,")
    edit(base, "tickets/A-1.md", "It waits", "It waits for long")
    code, problems = check()
    assert (0, []) == (code, places(problems)), problems


def test_an_improvement_is_a_note(base: Repository, check: Check) -> None:
    """And so is evidence that is out of date."""
    edit(base, "fixes/a_1/fix.py", "    torch.cuda.synchronize()\n", "")
    code, problems = check()
    assert (0, []) == (code, places(problems)), problems
    assert [
        "A-1: fix.syncs is better than claimed, 2 (tensors=1: 1)",
        "A-1: its evidence is out of date",
    ] == [each["message"] for each in problems]


def test_main_may_go_on(base: Repository, git: Git, check: Check) -> None:
    """What main has changed since is no change of the branch, merged into it or not; nothing is measured."""
    git("switch", "--quiet", "main")
    edit(base, "verifiers/helper.py", "10**9", "10**8")
    git("commit", "--quiet", "--all", "-m", "main")
    git("switch", "--quiet", "branch")
    (base.root / "link").symlink_to("readme.txt")
    (base.root / "fixes/a_1/fix.py").chmod(0o755)
    assert (0, []) == check()
    git("merge", "--quiet", "--no-edit", "main")
    assert (0, []) == check()


@pytest.mark.slow
def test_a_fix_may_have_another_name(base: Repository, check: Check) -> None:
    """Another file and another function: it is measured, and its variant is no changed rule."""
    (base.root / "fixes/a_1/fix.py").rename(base.root / "quick.py")
    edit(base, "quick.py", "def norms", "def all_norms")
    variants = "variants: {found: fixes/a_1/found.py:norms, fix: quick.py:all_norms}\nclaims:"
    edit(base, "tickets/A-1.md", "claims:", variants)
    code, problems = check()
    assert (0, []) == (code, places(problems)), problems


def fix(body: str, before: str = "") -> str:
    """Return a fix with other code in the place of its read, and more code before it."""
    return f"import sys\n{FIX}".replace("\n\ndef", f"{before}\n\ndef").replace(READ, indent(body, "    "))


FAST, LOOP = READ.strip(), SLOW.strip()
DISHONEST = {
    "new helper": (
        fix("return [read(tensor.norm()) for tensor in tensors]", "\nfrom reading import read\n"),
        "fix.syncs is claimed to be 2",
    ),
    "special-cased on the stated sizes": (
        fix(f"if len(tensors) in (1, 2, 5):\n    {FAST}\n{LOOP}\n"),
        "fix.syncs is claimed to be 2",
    ),
    "special-cased on what measures": (
        fix(f"if 'simcuda' in sys.modules:\n    {FAST}\n{LOOP}\n"),
        "the code asks whether it is measured: 'simcuda'",
    ),
    "special-cased on the name of the device": (
        fix(f"if 'H200' in torch.cuda.get_device_name():\n    {FAST}\n{LOOP}\n"),
        "fix.syncs is claimed to be 2",
    ),
    "cached between calls": (
        fix(
            "key = len(tensors)\nif key not in KNOWN:\n    KNOWN[key] = read(tensors)\nreturn KNOWN[key]\n",
            "\nKNOWN = {}\n\n\ndef read(rows):\n"
            "    return torch.stack([row.norm() for row in rows]).tolist()\n",
        ),
        "fix.same_result_as is claimed to be found",
    ),
    "input mutated": (
        fix(FAST.replace("return", "found =") + "\ntensors[0].zero_()\nreturn found\n"),
        "fix.same_result_as is claimed to be found",
    ),
    "work on a side stream": (
        fix(
            "found = torch.stack([tensor.norm() for tensor in tensors])\n"
            "with torch.cuda.stream(torch.cuda.Stream()):\n    return found.tolist()\n"
        ),
        "accesses the same data from two streams",
    ),
    "batched calls": (
        fix(f"CALLS.append(1)\nif len(CALLS) % 2:\n    {LOOP}\n{FAST}\n", "\nCALLS = []\n"),
        "costs differ from run to run",
    ),
    "no fix": (None, "A-1: its fix is gone"),
    "a bug": (fix(FAST.replace(".norm()", ".nrm()")), "has no attribute 'nrm'"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DISHONEST)
def test_a_dishonest_fix_is_named(base: Repository, check: Check, name: str) -> None:
    """It holds by the letter of its claims, or seems to; the gate measures what no file states."""
    text, said = DISHONEST[name]
    file = base.root / "fixes/a_1/fix.py"
    base.write("reading.py", "def read(value):\n    return value.item()\n")
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    code, problems = check()
    errors = [each["message"] for each in problems if each["level"] == "error"]
    assert (1, True) == (code, any(said in message for message in errors)), errors
    assert 1 == len(errors)
    if name == "new helper":
        assert [("gate-worse", "reading.py", 2)] == places(problems)


WEAKENED = {
    "claim": ("tickets/A-1.md", "syncs: 2, ", "", "claim fix.syncs 2, which is gone"),
    "sweep": ("verifiers/a_1.py", "(1, 2, 5)", "(1, 2)", "verifiers/a_1.py is changed"),
    "code as found": ("fixes/a_1/found.py", "tensor.norm().item()", "0.0", "fixes/a_1/found.py is changed"),
    "decision": ("tickets/A-1.md", "claims:", "decision: keep\nclaims:", "decision: fix -> keep"),
}


@pytest.mark.slow
def test_a_branch_does_not_change_what_it_is_measured_by(base: Repository, check: Check) -> None:
    """All is named once, and only the command line accepts it; meanwhile the base's rules count."""
    for path, old, new, _ in WEAKENED.values():
        edit(base, path, old, new)
    text = (base.root / "tickets/A-1.md").read_text()
    base.write("tickets/A-1.md", f"{text}\n**Accepted change:** fix.syncs: x\n")
    code, problems = check()
    (problem,) = [each for each in problems if each["level"] == "error"]
    assert (1, "gate-changed", "if that is meant: --accept A-1") == (code, problem["rule"], problem["hint"])
    assert [] == [said for *_, said in WEAKENED.values() if said not in problem["message"]]
    edit(base, "fixes/a_1/found.py", "0.0", "tensor.norm().item()")
    edit(base, "tickets/A-1.md", "decision: keep\nclaims:", "claims:")
    assert 0 == check("--accept", "a-1")[0]


@pytest.mark.slow
def test_what_several_tickets_are_measured_by(base: Repository, check: Check) -> None:
    """Each of them says that it is changed."""
    edit(base, "verifiers/helper.py", "10**9", "1")
    code, problems = check()
    errors = [each["message"] for each in problems if each["level"] == "error"]
    assert (1, 2) == (code, len(errors))
    assert all("verifiers/helper.py is changed" in message for message in errors)


@pytest.mark.slow
def test_a_weaker_claim_does_not_count(base: Repository, check: Check) -> None:
    """The base's claim is broken; by the branch's own the slow code holds, which somebody may accept."""
    edit(base, "tickets/A-1.md", "syncs: 2,", "syncs: <= 100,")
    edit(base, "fixes/a_1/fix.py", READ, SLOW)
    code, problems = check()
    assert (1, ["gate-changed", "gate-worse"]) == (code, [rule for rule, *_ in places(problems)])
    assert 0 == check("--accept", "A-1")[0]


@pytest.mark.slow
def test_closing_as_fixed_takes_a_fix(base: Repository, git: Git, check: Check) -> None:
    """A ticket that the branch closes must be verified, at sizes that no file states, too."""
    base.ticket("A-1", status="open", more=BLOCK)
    base.write("fixes/a_1/fix.py", FIX.replace(READ, SLOW))
    base.ticket("C-1", status="open")
    git("commit", "--quiet", "--all", "-m", "open")
    git("branch", "--force", "main")
    base.ticket("A-1", status="fixed", more=BLOCK)
    base.ticket("C-1", status="fixed")
    code, problems = check()
    unproven = ("gate-closed", "tickets/C-1.md", 1)
    assert (1, [unproven, ("gate-worse", "fixes/a_1/fix.py", 8)]) == (code, sorted(places(problems)))
    base.ticket("C-1", status="open")
    base.write("fixes/a_1/fix.py", DISHONEST["special-cased on the stated sizes"][0] or "")
    code, problems = check()
    assert (1, [("gate-worse", "fixes/a_1/fix.py", 10)]) == (code, places(problems))
    base.write("fixes/a_1/fix.py", FIX)
    code, problems = check()
    assert (0, []) == (code, places(problems))


@pytest.mark.slow
def test_a_ticket_that_is_gone_is_missed(base: Repository, check: Check) -> None:
    """To remove what is measured is a decision; to move the file is none."""
    (base.root / "tickets/A-1.md").rename(base.root / "tickets/moved.md")
    code, problems = check()
    assert (0, []) == (code, places(problems))
    (base.root / "tickets/moved.md").unlink()
    code, problems = check()
    assert (1, [("gate-gone", "tickets/A-1.md", 1)]) == (code, places(problems))
    assert 0 == check("--accept", "A-1")[0]


def test_a_file_that_cannot_be_read_is_bad_data(base: Repository, check: Check) -> None:
    """The branch that brings it fails."""
    base.write("tickets/D-1.md", b"\xff\xfe\x00")
    code, problems = check()
    assert 4 == code
    assert ["gate-unread"] == [rule for rule, *_ in places(problems)]


@pytest.mark.slow
def test_evidence_of_a_branch_decides_nothing(base: Repository, check: Check) -> None:
    """It may be missing, out of date or edited: that is a note."""
    edit(
        base,
        "fixes/a_1/fix.py",
        "    torch.cuda.synchronize()\n",
        "    torch.cuda.synchronize()\n    tensors = [*tensors]\n",
    )
    (file,) = (base.root / "evidence/A-1").glob("*.json")
    file.write_text(file.read_text().replace("verified", "failed"))
    code, problems = check()
    assert (0, []) == (code, places(problems))
    assert ["gate-stale"] == [each["rule"] for each in problems]
    file.unlink()
    assert (0, []) == check()


def test_formats_and_summary(base: Repository, tmp_path: Path) -> None:
    """A line for each problem, as compilers print it; the summary is for people."""
    # No ticket uses it, so that nothing is measured.
    base.write("new.py", "import sys\n\nFAST = 'simcuda' in sys.modules\n")
    (base.root / "tickets/B-1.md").unlink()
    summary = tmp_path / "summary.md"
    ended = run_here(base.root, "check", "--base", "main", "--summary", str(summary), "--accept", "B-1")
    line = "new.py:3: error [gate-aware] the code asks whether it is measured: 'simcuda'"
    assert (1, line) == (ended.code, ended.out[: len(line)])
    assert summary.read_text().startswith(
        "## Tickets: the gate failed\n\nCompared with `main`; 0 tickets measured.\n"
    )
    assert "- `new.py:3` **error** `gate-aware`: " in summary.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--base", "mian"), "--base mian: there is no revision mian"),
        (("--base", "main", "--accept", "A-7"), "--accept a-7: no such ticket or budget"),
        (("--base", "main", "--accept", "budget:x"), "--accept budget:x: no such ticket or budget"),
    ],
)
def test_wrong_usage(base: Repository, words: tuple[str, ...], said: str) -> None:
    """A misspelt name is refused before anything is measured."""
    ended = run_here(base.root, "check", *words)
    assert (2, True) == (ended.code, said in ended.err)


def test_a_base_without_a_register(repository: Repository, git: Git) -> None:
    """All tickets of the branch are new; open ones need no measurement."""
    (repository.root / "tickets").rmdir()
    git("add", "--all")
    git("commit", "--quiet", "-m", "code")
    git("switch", "--quiet", "--create", "branch")
    repository.ticket("A-1", status="open", more=BLOCK)
    ended = run_here(repository.root, "check", "--base", "main")
    assert (0, "") == (ended.code, ended.out)


def test_the_register_is_written_by_nobody(base: Repository, git: Git, check: Check) -> None:
    """Work tree and index stay as they are."""
    base.write("fixes/a_1/fix.py", FIX.replace(READ, f"    {READ}".lstrip() and READ))
    before = git("status", "--porcelain=v2")
    assert 0 == check()[0]
    assert before == git("status", "--porcelain=v2")
