"""Variants at revisions: each imports its own revision's code, and results are compared across processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import Git, Repository, release_folders

from finding_tickets.errors import RevisionError
from finding_tickets.ground.commits import Checkouts, Revision
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.verification import Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.verify.verify import Settings, Verified, verify

VERIFIER = """\
import torch
from finding_tickets.workload import Point, Workload
from pkg.parts import Parts

def build(point, device, generator):
    return (Parts([torch.rand(3, generator=generator).to(device) for _ in range(point.n)]),)

workload = Workload(ticket="B1-PT-01", build=build, sweep=[Point(n=n) for n in (1, 2, 5, 9)])
"""
PARTS = """\
from dataclasses import dataclass

@dataclass
class Parts:
    tensors: list
"""
SLOW = """\
from dataclasses import dataclass
from .reading import read

@dataclass
class Sums:
    values: list

class Meter:
    @staticmethod
    def sums(parts):
        return Sums(read([t.sum() for t in parts.tensors]))
"""
ONE_BY_ONE = "def read(values):\n    return [value.item() for value in values]\n"
TOGETHER = "import torch\n\ndef read(values):\n    return torch.stack(values).tolist()\n"
BLOCK = """\
## Remediation

```yaml
variants:
  found: src/pkg/meter.py:Meter.sums@{found}
  fix: src/pkg/meter.py:Meter.sums{fix}
claims:
  found: {{syncs: n}}
  fix: {{syncs: 1, same_result_as: found}}
```
"""


USING = """
import sys
from pathlib import Path
from finding_tickets.ground.commits import Checkouts, Revision

Checkouts(Path(sys.argv[1])).files(Revision("", sys.argv[2]))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that holds nothing yet."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture
def history(repository: Repository, git: Git) -> list[str]:
    """The commits of a package whose helper reads one by one at first, and all together then."""
    repository.write("verifiers/b1_pt_01.py", VERIFIER)
    repository.write("src/pkg/__init__.py", "")
    repository.write("src/pkg/parts.py", PARTS)
    repository.write("src/pkg/meter.py", SLOW)
    commits = []
    for helper in (ONE_BY_ONE, TOGETHER):
        repository.write("src/pkg/reading.py", helper)
        git("add", "src")
        git("commit", "-m", "change")
        commits.append(git("rev-parse", "HEAD").strip())
    return commits


def run(repository: Repository, isolation: Isolation, **overrides: str) -> Verified:
    """Verify the one ticket."""
    (verified,) = verify(repository.load().documents, isolation, settings_of(repository, **overrides))
    return verified


def settings_of(repository: Repository, **overrides: str) -> Settings:
    """How to verify, with variants at other revisions."""
    return Settings(
        root=repository.root,
        evidence="evidence",
        meter="simulated",
        timeout=60,
        memory=1 << 32,
        overrides={"*" if name == "every" else name: at for name, at in overrides.items()},
    )


def measured(repository: Repository, isolation: Isolation, **overrides: str) -> Verification:
    """The verification of the one ticket."""
    verification = run(repository, isolation, **overrides).verification
    assert verification is not None
    return verification


def test_each_variant_imports_the_code_of_its_revision(
    repository: Repository, isolation: Isolation, history: list[str]
) -> None:
    """The function is the same file in both; what differs is the helper that its revision imports."""
    repository.ticket(more=BLOCK.format(found=history[0], fix=""))
    done = measured(repository, isolation)
    assert (Verdict.VERIFIED, "every claim about found and fix holds") == (done.verdict, done.reason)
    assert {"found": "n", "fix": "1"} == {name: of.laws["syncs"] for name, of in done.variants.items()}
    # Places are those of the repository, wherever the revision was checked out.
    sites = {site.file for of in done.variants.values() for site in of.sites}
    assert {"src/pkg/reading.py", "src/pkg/meter.py"} == sites


@pytest.mark.slow
@pytest.mark.parametrize(
    ("helper", "verdict"),
    [
        (f"# As before.\n{ONE_BY_ONE}", Verdict.INCONCLUSIVE),
        (ONE_BY_ONE.replace("item", "tolist"), Verdict.VERIFIED),
    ],
)
def test_a_fix_whose_imports_are_the_same_is_no_fix(
    repository: Repository, isolation: Isolation, history: list[str], helper: str, verdict: Verdict
) -> None:
    """The fix may be in any file that the function imports; a comment there is none."""
    repository.write("src/pkg/reading.py", helper)
    repository.ticket(more=BLOCK.format(found=history[0], fix="").replace("syncs: 1", "syncs: n"))
    done = measured(repository, isolation)
    assert (verdict, verdict is Verdict.INCONCLUSIVE) == (done.verdict, "are the same code" in done.reason)


@pytest.mark.slow
def test_results_of_other_revisions_are_compared_by_path(
    repository: Repository, isolation: Isolation, history: list[str]
) -> None:
    """Dataclasses of either revision's own module are compared field by field."""
    wrong = TOGETHER.replace("torch.stack(values)", "(torch.stack(values) + 1)")
    repository.write("src/pkg/reading.py", wrong)
    repository.ticket(more=BLOCK.format(found=history[0], fix=""))
    done = measured(repository, isolation)
    (same,) = [claim for claim in done.claims if claim.metric == "same_result_as"]
    assert (Verdict.FAILED, False) == (done.verdict, same.holds)
    assert "n=1: result['values'][0]: " in same.counterexamples[0]


@pytest.mark.slow
def test_the_work_tree_is_left_alone(
    repository: Repository, isolation: Isolation, history: list[str], git: Git
) -> None:
    """Neither the index, nor a change in progress, nor the list of work trees is touched."""
    repository.ticket(more=BLOCK.format(found=history[0], fix=f"@{history[1]}"))
    repository.write("src/pkg/reading.py", "in progress")
    index = (repository.root / ".git/index").read_bytes()
    before = sorted(path for path in repository.root.rglob("*") if "evidence" not in path.parts)
    assert Verdict.VERIFIED == measured(repository, isolation).verdict
    assert index == (repository.root / ".git/index").read_bytes()
    after = [path for path in repository.root.rglob("*") if not {"evidence", "__pycache__"} & set(path.parts)]
    assert before == sorted(after)
    assert 1 == len(git("worktree", "list").strip().split("\n"))


@pytest.mark.slow
def test_a_revision_that_moved_makes_the_evidence_stale(
    repository: Repository, isolation: Isolation, history: list[str], git: Git
) -> None:
    """A tag that names another commit now is another input."""
    git("tag", "before", history[0])
    repository.ticket(more=BLOCK.format(found="before", fix=""))
    measured(repository, isolation)
    (document,) = repository.load().documents
    assert Verdict.VERIFIED == repository.measured(document.id.value).verdict
    git("tag", "--force", "before", history[1])
    assert Verdict.STALE == repository.measured(document.id.value).verdict


@pytest.mark.slow
def test_overrides_measure_elsewhere_and_record_nothing(
    repository: Repository, isolation: Isolation, history: list[str]
) -> None:
    """With the fix at the first revision the claims about it are false, and no evidence says so."""
    repository.ticket(more=BLOCK.format(found=history[0], fix=""))
    done = measured(repository, isolation, fix=history[0])
    assert (Verdict.FAILED, "n") == (done.verdict, done.variants["fix"].laws["syncs"])
    assert not (repository.root / "evidence").exists()
    # One that names its own revision keeps it.
    done = measured(repository, isolation, every=history[0])
    assert "n" == done.variants["fix"].laws["syncs"]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ("nowhere", "found: there is no revision nowhere"),
        ("both", "found: both is ambiguous: refs/heads/both and refs/tags/both"),
        ("first", "found: there is no file src/pkg/meter.py at first"),
        ("broken", "found at broken: src/pkg/reading.py:1: ModuleNotFoundError: No module named 'gone'"),
        ("blank", "found at blank: src/pkg/meter.py: has no function Meter.sums"),
    ],
)
def test_a_revision_that_cannot_be_measured_ends_inconclusive(
    repository: Repository, isolation: Isolation, history: list[str], git: Git, found: str, reason: str
) -> None:
    """The verdict says which variant it was, and why."""
    git("branch", "both", history[0])
    git("tag", "both", history[1])
    git("checkout", "--quiet", "--orphan", "first")
    git("rm", "-r", "--quiet", "--cached", "src")
    git("commit", "--allow-empty", "-m", "nothing")
    git("checkout", "--quiet", "--force", "main")
    repository.write("src/pkg/reading.py", "import gone")
    git("commit", "--all", "-m", "broken")
    git("tag", "broken")
    repository.write("src/pkg/meter.py", "")
    git("commit", "--all", "-m", "blank")
    git("tag", "blank")
    repository.write("src/pkg/meter.py", SLOW)
    repository.write("src/pkg/reading.py", TOGETHER)
    repository.write("verifiers/b1_pt_01.py", VERIFIER)
    repository.ticket(more=BLOCK.format(found=found, fix=""))
    done = measured(repository, isolation)
    assert (Verdict.INCONCLUSIVE, reason) == (done.verdict, done.reason)


def test_a_name_is_ambiguous_only_where_it_leads_to_two_commits(
    repository: Repository, history: list[str], git: Git
) -> None:
    """A branch below the name of a tag has another name, and an annotated tag is the commit it stands for."""
    git("tag", "release", history[0])
    git("branch", "release/next", history[1])
    git("tag", "--annotate", "--message", "first", "both", history[0])
    git("branch", "both", history[0])
    checkouts = Checkouts(repository.root)
    assert [history[0]] * 2 == [checkouts.revision(name).commit for name in ("release", "both")]


@contextmanager
def another_run(repository: Repository, commit: str) -> Iterator[None]:
    """A process that has checked out a commit and goes on meanwhile."""
    command = [sys.executable, "-c", USING, str(repository.root), commit]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        assert "ready\n" == run.stdout.readline()
        yield


def checked_out(repository: Repository, *commits: str) -> list[Path]:
    """The commits as files, for a run that begins now."""
    release_folders()
    return [Checkouts(repository.root).files(Revision("", commit)) for commit in commits]


@pytest.mark.slow
def test_a_run_has_all_that_it_checks_out_however_much(
    repository: Repository, isolation: Isolation, history: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was checked out first is there when it is measured, though fewer are kept in the end."""
    monkeypatch.setattr("finding_tickets.ground.commits._KEEP", 1)
    repository.ticket(more=BLOCK.format(found=history[0], fix=f"@{history[1]}"))
    done = measured(repository, isolation)
    assert (Verdict.VERIFIED, "every claim about found and fix holds") == (done.verdict, done.reason)


def test_a_run_that_begins_keeps_the_checkouts_that_were_used_last(
    repository: Repository, history: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others go, unless they may be in use by another run; it does not matter which were made last."""
    monkeypatch.setattr("finding_tickets.ground.commits._KEEP", 1)
    first, last = checked_out(repository, *history)
    with another_run(repository, history[0]):
        checked_out(repository, history[0])
        assert (True, True) == (first.is_dir(), last.is_dir())
    checked_out(repository, history[0])
    assert (True, False) == (first.is_dir(), last.is_dir())


def test_what_a_killed_process_left_of_a_checkout_goes(
    repository: Repository, history: list[str], cache: Path
) -> None:
    """Unless another run is under way, which may still be writing it."""
    left = cache / "finding-tickets/checkouts/.left"
    left.mkdir(parents=True)
    with another_run(repository, history[0]):
        # It was alone when it began.
        assert not left.exists()
        left.mkdir()
        checked_out(repository, history[0])
        assert left.exists()
    checked_out(repository, history[0])
    assert not left.exists()


def test_a_revision_is_written_by_its_own_attributes(
    repository: Repository, history: list[str], git: Git
) -> None:
    """What the work tree says of line ends and encodings is said of its own files alone."""
    name = "src/pkg/reading.py"
    repository.write(".gitattributes", f"{name} text eol=crlf\n")
    git("add", ".gitattributes")
    git("commit", "-m", "line ends")
    repository.write(".gitattributes", f"{name} working-tree-encoding=UTF-16LE-BOM\n")
    checkouts = Checkouts(repository.root)
    first, last = (checkouts.files(checkouts.revision(at)) / name for at in (history[1], "HEAD"))
    assert TOGETHER.encode() == first.read_bytes()
    assert TOGETHER.replace("\n", "\r\n").encode() == last.read_bytes()


@pytest.mark.usefixtures("history")
def test_a_repository_that_git_does_not_trust_is_told(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What git will not look at is another thing than a revision that is not there."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(RevisionError, match="HEAD: detected dubious ownership in repository"):
        Checkouts(repository.root).revision("HEAD")


def test_the_repository_of_a_hook_is_not_taken_for_the_one_that_is_asked(
    repository: Repository,
    history: list[str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Git hands a hook the place of its own repository, which a register below or elsewhere is not in."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("GIT_DIR", str(elsewhere))
    monkeypatch.setenv("GIT_WORK_TREE", str(elsewhere))
    monkeypatch.setenv("GIT_INDEX_FILE", str(elsewhere / "index"))
    assert history[1] == Checkouts(repository.root).revision("HEAD").commit
