"""``tickets bisect``: a defect through the commits of a repository."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from finding_tickets.errors import ExitCode
from finding_tickets.measure.processes.isolation import Isolation

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Git, Repository

Tickets = Callable[..., "Ran"]

VERIFIER = """\
import torch
from finding_tickets.workload import Point, Workload

def build(point, device, generator):
    return ([torch.rand(3, generator=generator).to(device) for _ in range(point.n)],)

workload = Workload(ticket="B1-PT-01", build=build, sweep=[Point(n=n) for n in (1, 2, 5, 9)])
"""
TOTALS = """\
from pkg.reading import read


def totals(tensors):
    return read([tensor.sum() for tensor in tensors])
"""
RENAMED = TOTALS.replace("tensor", "each")
ONE_BY_ONE = "def read(values):\n    return [value.item() for value in values]\n"
TWICE = "def read(values):\n    return [value.item() + value.item() for value in values]\n"
NEVER = "def read(values):\n    return values\n"
TOGETHER = "import torch\n\n\ndef read(values):\n    return torch.stack(values).tolist()\n"
TICKET = """\
## Remediation

```yaml
variants: {found: 'src/pkg/sums.py:totals'}
claims: {found: {syncs: n}}
```
"""
Commits = dict[str, str]


@pytest.fixture
def commits(repository: Repository, git: Git) -> Commits:
    """Ten commits, by their messages: a defect comes, stays, goes, its code moves, and it comes again."""
    made: Commits = {}
    old, new, helper = "src/pkg/meter.py", "src/pkg/sums.py", "src/pkg/reading.py"

    def commit(message: str, **files: str) -> None:
        for name, text in files.items():
            repository.write({"old": old, "new": new, "helper": helper}.get(name, name), text)
        git("add", "--all", "src")
        git("commit", "--quiet", "--allow-empty", "-m", message)
        made[message] = git("rev-parse", "HEAD").strip()

    repository.write("src/pkg/__init__.py", "")
    commit("before", helper=TOGETHER)
    commit("begun", old=TOTALS)
    commit("introduced", helper=ONE_BY_ONE)
    commit("not mended", old=RENAMED)
    commit("unrelated", **{"src/pkg/other.py": "import nothing_at_all\n"})
    commit("broken", helper="import gone\n")
    commit("mended", helper=TOGETHER)
    (repository.root / old).unlink()
    commit("moved", new=RENAMED)
    commit("brought back", helper=ONE_BY_ONE)
    commit("last")
    repository.write("verifiers/b1_pt_01.py", VERIFIER)
    repository.ticket(more=TICKET)
    return made


def steps(ran: Ran) -> list[tuple[Any, ...]]:
    """What the search says of each commit."""
    (item,) = ran.data
    return [
        (step["subject"], step["state"], step["turn"], step["laws"].get("syncs")) for step in item["steps"]
    ]


def test_each_turn_is_found_with_its_law(repository: Repository, tickets: Tickets, commits: Commits) -> None:
    """Through a helper, a commit that does not import, and a new name; what changes nothing is left out."""
    before = sorted(repository.root.rglob("*"))
    index = (repository.root / ".git/index").read_bytes()
    ran = tickets("bisect", "b1-pt-01", "--format", "json")
    assert ExitCode.OK == ran.code
    assert [
        ("begun", "clean", None, "1"),
        ("introduced", "defect", "introduced", "n"),
        ("not mended", "defect", None, "n"),
        ("broken", "skipped", None, None),
        ("mended", "clean", "fixed", "1"),
        ("moved", "clean", None, "1"),
        ("brought back", "defect", "brought back", "n"),
    ] == steps(ran)
    (item,) = ran.data
    by_name = {step["subject"]: step for step in item["steps"]}
    assert [commits["broken"]] == by_name["mended"]["suspects"]
    assert "src/pkg/reading.py:1: ModuleNotFoundError: No module named 'gone'" == by_name["broken"]["reason"]
    assert ["src/pkg/meter.py", "src/pkg/sums.py"] == [by_name[name]["place"] for name in ("mended", "moved")]
    # The commit before the code began is not looked at.
    assert 9 == item["commits"]
    assert before == sorted(repository.root.rglob("*"))
    assert index == (repository.root / ".git/index").read_bytes()


@pytest.mark.slow
def test_another_defect_is_no_fix(
    repository: Repository, tickets: Tickets, git: Git, commits: Commits
) -> None:
    """Where something is claimed of the fix, code that is neither as found nor as fixed has changed."""
    for message, text in (("worse", TWICE), ("mended again", NEVER), ("bad again", TWICE)):
        repository.write("src/pkg/reading.py", text)
        git("commit", "--quiet", "--all", "-m", message)
    variants = "variants: {found: 'src/pkg/sums.py:totals', fix: 'src/pkg/sums.py:totals'}"
    claims = "claims: {found: {syncs: n}, fix: {syncs: 1, same_result_as: found}}"
    repository.ticket(more=f"## Remediation\n\n```yaml\n{variants}\n{claims}\n```\n")
    ran = tickets("bisect", "B1-PT-01", "--good", commits["brought back"], "--format", "json")
    # TWICE waits twice for each of the n values; NEVER does not even wait as often as a fix may.
    assert [
        ("brought back", "defect", None, "n"),
        ("worse", "changed", "changed", "2*n"),
        ("mended again", "clean", "fixed", "0"),
        ("bad again", "changed", "changed", "2*n"),
    ] == steps(ran)
    assert "not as claimed: found.syncs, fix.syncs" == ran.data[0]["steps"][1]["reason"]


@pytest.mark.slow
def test_a_second_search_measures_nothing(
    repository: Repository, tickets: Tickets, commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It remembers what was measured, also of skipped commits, until the verifier is another one."""
    assert "brought back" in commits
    first = tickets("bisect", "B1-PT-01", "--meter", "simulated", "--format", "json")
    # One for each of the seven kinds of code above.
    assert 7 == first.data[0]["measured"]
    with monkeypatch.context() as patched:
        patched.setattr(Isolation, "run", lambda *_: pytest.fail("something was to be measured"))
        again = tickets("bisect", "B1-PT-01", "--meter", "simulated", "--format", "json")
    assert (0, steps(first)) == (again.data[0]["measured"], steps(again))
    repository.write("verifiers/b1_pt_01.py", VERIFIER.replace("(1, 2, 5, 9)", "(1, 3, 4, 6, 9)"))
    changed = tickets("bisect", "B1-PT-01", "--meter", "simulated", "--good", "HEAD~2", "--format", "json")
    assert 2 == changed.data[0]["measured"]


@pytest.mark.slow
def test_what_failed_is_tried_again_with_other_packages(
    tickets: Tickets, commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit may have lacked one; what was measured stays known."""
    arguments = ("bisect", "B1-PT-01", "--good", commits["not mended"], "--meter", "simulated")
    # One defect, broken, mended, moved and brought back; then the broken one alone.
    for packages, number in [("one", 5), ("one", 0), ("one two", 1), ("one two", 0)]:
        monkeypatch.setattr(
            "finding_tickets.history.walk.installed_packages", lambda packages=packages: packages
        )
        assert number == tickets(*arguments, "--format", "json").data[0]["measured"]


@pytest.mark.slow
def test_a_verifier_that_is_edited_meanwhile_is_another_one(
    repository: Repository, tickets: Tickets, commits: Commits
) -> None:
    """What the old one measured is not taken for what the new one would."""
    editing = "def build(point, device, generator):\n    open(__file__, 'a').write('# Edited.\\n')\n"
    edited = VERIFIER.replace("def build(point, device, generator):\n", editing)
    repository.write("verifiers/b1_pt_01.py", edited)
    arguments = ("bisect", "B1-PT-01", "--good", commits["brought back"], "--meter", "simulated")
    assert 1 == tickets(*arguments, "--format", "json").data[0]["measured"]
    assert 1 == tickets(*arguments, "--format", "json").data[0]["measured"]


def test_what_was_measured_on_one_gpu_is_measured_on_another(
    tickets: Tickets, commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may cost differently."""
    arguments = ("bisect", "B1-PT-01", "--good", commits["brought back"], "--meter", "simulated")
    for name, number in [("H100", 1), ("H200", 1), ("H100", 0)]:
        monkeypatch.setattr("finding_tickets.history.bisect.gpu_names", lambda *_, name=name: (name,))
        assert number == tickets(*arguments, "--format", "json").data[0]["measured"]


@pytest.mark.slow
def test_a_module_that_code_can_do_without_is_looked_at_once_it_is_there(
    repository: Repository, tickets: Tickets, git: Git
) -> None:
    """Whoever tries to import it and goes on without it is mended by the commit that adds it."""
    optional = "try:\n    from pkg.fast import read\nexcept ImportError:\n    from pkg.slow import read\n"
    repository.write("src/pkg/__init__.py", "")
    repository.write("src/pkg/slow.py", ONE_BY_ONE)
    repository.write("src/pkg/sums.py", optional + TOTALS.partition("\n")[2])
    git("add", "src")
    git("commit", "--quiet", "-m", "begun")
    repository.write("src/pkg/fast.py", TOGETHER)
    git("add", "src")
    git("commit", "--quiet", "-m", "faster")
    git("rm", "--quiet", "src/pkg/fast.py")
    git("commit", "--quiet", "-m", "gone")
    repository.write("verifiers/b1_pt_01.py", VERIFIER)
    git("add", "verifiers")
    git("commit", "--quiet", "-m", "last")
    repository.ticket(more=TICKET)
    ran = tickets("bisect", "B1-PT-01", "--format", "json", "--meter", "simulated")
    assert [
        ("begun", "defect", "introduced", "n"),
        ("faster", "clean", "fixed", "1"),
        ("gone", "defect", "brought back", "n"),
    ] == steps(ran)
    # The last commit has the code of the one before it, and so has the first.
    assert 2 == ran.data[0]["measured"]


@pytest.mark.slow
def test_code_behind_a_linked_folder_is_what_the_link_leads_to(
    repository: Repository, tickets: Tickets, git: Git
) -> None:
    """A helper that is imported through the link is mended where it stands, and then by another link."""
    repository.write("src/app/sums.py", TOTALS)
    for folder in ("old", "new"):
        repository.write(f"lib/{folder}/reading.py", ONE_BY_ONE)
    link = repository.root / "src/pkg"
    link.symlink_to("../lib/old")
    git("add", "src", "lib")
    git("commit", "--quiet", "-m", "begun")
    repository.write("lib/old/reading.py", TOGETHER)
    git("commit", "--quiet", "--all", "-m", "mended")
    link.unlink()
    link.symlink_to("../lib/new")
    git("commit", "--quiet", "--all", "-m", "linked to the other")
    repository.write("verifiers/b1_pt_01.py", VERIFIER)
    repository.ticket(more=TICKET.replace("src/pkg/sums.py", "src/app/sums.py"))
    assert [
        ("begun", "defect", "introduced", "n"),
        ("mended", "clean", "fixed", "1"),
        ("linked to the other", "defect", "brought back", "n"),
    ] == steps(tickets("bisect", "B1-PT-01", "--format", "json", "--meter", "simulated"))


def test_a_range_begins_at_good_and_ends_at_bad(tickets: Tickets, commits: Commits) -> None:
    """What is outside has no say in whether something came back."""
    good, bad = commits["begun"], commits["not mended"]
    ran = tickets("bisect", "B1-PT-01", "--good", good, "--bad", bad)
    assert ExitCode.OK == ran.code
    _, *rows = [line.split() for line in ran.out.splitlines()]
    assert [["clean", "syncs:", "1", "begun"], ["defect", "introduced", "syncs:", "n", "introduced"]] == [
        row[2:] for row in rows[:2]
    ]
    assert 3 == len(rows)


@pytest.mark.slow
def test_what_was_there_before_good_was_not_introduced_after_it(tickets: Tickets, commits: Commits) -> None:
    """The first commit that is looked at has the defect, and no say in where it came from."""
    ran = tickets("bisect", "B1-PT-01", "--good", commits["not mended"], "--format", "json")
    assert ("not mended", "defect", None, "n") == steps(ran)[0]
    assert ("brought back", "defect", "brought back", "n") == steps(ran)[-1]
    assert ["the defect is older than the commits that were looked at"] == ran.data[0]["gaps"]


@pytest.mark.slow
def test_a_function_that_moved_into_another_file_is_followed(
    repository: Repository, tickets: Tickets, git: Git
) -> None:
    """The only file that defines it has it, though git knows of no rename."""
    repository.write("src/pkg/__init__.py", "")
    repository.write("src/pkg/reading.py", ONE_BY_ONE)
    repository.write("src/pkg/all.py", TOTALS + "\n\ndef more():\n    return 1\n")
    repository.write("src/pkg/sums.py", "LIMIT = 3\n")
    git("add", "src")
    git("commit", "--quiet", "-m", "one")
    repository.write("src/pkg/all.py", "def more():\n    return 1\n")
    repository.write("src/pkg/sums.py", TOTALS + "\n\nLIMIT = 3\n")
    git("commit", "--quiet", "--all", "-m", "two")
    repository.write("verifiers/b1_pt_01.py", VERIFIER)
    repository.ticket(more=TICKET)
    ran = tickets("bisect", "B1-PT-01", "--format", "json")
    assert [("src/pkg/all.py", "introduced"), ("src/pkg/sums.py", None)] == [
        (step["place"], step["turn"]) for step in ran.data[0]["steps"]
    ]


@pytest.mark.slow
def test_a_file_that_git_knows_to_be_renamed_is_followed(
    repository: Repository, tickets: Tickets, git: Git
) -> None:
    """Though another file defines a function of the same name."""
    for name, text in {
        "__init__": "",
        "reading": ONE_BY_ONE,
        "a": TOTALS,
        "b": TOTALS + "# twin\n" * 9,
    }.items():
        repository.write(f"src/pkg/{name}.py", text)
    git("add", "src")
    git("commit", "--quiet", "-m", "one")
    git("mv", "src/pkg/a.py", "src/pkg/sums.py")
    git("commit", "--quiet", "-m", "two")
    repository.write("verifiers/b1_pt_01.py", VERIFIER)
    repository.ticket(more=TICKET)
    ran = tickets("bisect", "B1-PT-01", "--format", "json")
    assert [("src/pkg/a.py", "introduced"), ("src/pkg/sums.py", None)] == [
        (step["place"], step["turn"]) for step in ran.data[0]["steps"]
    ]


def test_code_of_a_submodule_is_not_looked_for_elsewhere(
    repository: Repository, tickets: Tickets, git: Git
) -> None:
    """Though a file of the repository itself defines a function of the same name."""
    repository.write("src/pkg/other.py", TOTALS)
    git("add", "src")
    git("commit", "--quiet", "-m", "one")
    commit = git("rev-parse", "HEAD").strip()
    git("update-index", "--add", "--cacheinfo", f"160000,{commit},lib")
    git("commit", "--quiet", "-m", "two")
    repository.write("lib/sums.py", TOTALS)
    repository.write("verifiers/b1_pt_01.py", VERIFIER)
    repository.ticket(more=TICKET.replace("src/pkg/sums.py", "lib/sums.py"))
    ran = tickets("bisect", "B1-PT-01")
    assert (ExitCode.USAGE, True) == (ran.code, "lib/sums.py is in the submodule lib, which has" in ran.err)


def test_nothing_known_of_the_newest_commit_is_inconclusive(tickets: Tickets, commits: Commits) -> None:
    """A search that ends in a commit that cannot run decides nothing of now."""
    ran = tickets("bisect", "B1-PT-01", "--good", commits["not mended"], "--bad", commits["broken"])
    assert ExitCode.INCONCLUSIVE == ran.code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bad", "nowhere"], "there is no revision nowhere"),
        (["--good", "main", "--bad", "main~3"], "--good main: not among the commits that led to main~3"),
        (["--variant", "fix"], "B1-PT-01 has no variant fix (one of found)"),
        (["--bad", "main~9"], "src/pkg/sums.py:totals is in none of"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(
    tickets: Tickets, commits: Commits, arguments: list[str], message: str
) -> None:
    """Before anything is measured, with what to do."""
    assert 10 == len(commits)
    ran = tickets("bisect", "B1-PT-01", *arguments)
    assert (ExitCode.USAGE, True) == (ran.code, message in ran.err)
