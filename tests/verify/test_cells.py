"""A cell of a matrix: known before anything runs, measured as it says or not at all, recorded on its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Git, Repository
from tests.other_python import other_python
from tests.verify.conftest import FIX, FOUND, TakesGpu, add

from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.measure.tasks import SIMULATED_DEVICE, TORCH, VISIBLE
from finding_tickets.model.verification import Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.config import MatrixConfig
from finding_tickets.register.staleness import own_torch
from finding_tickets.verify.evidence import current_verdict
from finding_tickets.verify.matrix import Cell, cells, in_cells, labels
from finding_tickets.verify.verify import Settings, Verified, verify

OTHER = "1.99.0"
"""A version that no torch has which this tool can use."""


def cell(torch: str = "", **more: Any) -> Cell:
    """A simulated cell of the work tree on the tool's own torch, but for what is said."""
    known = {"meter": "simulated", "device": SIMULATED_DEVICE, **more}
    return Cell(torch=torch or own_torch(), **known)


def run(repository: Repository, *measured: Cell, **more: Any) -> list[Verified]:
    """Verify everything in the repository in each of the cells."""
    settings = Settings(
        root=repository.root, evidence="evidence", meter="auto", timeout=60.0, memory=2 << 30, **more
    )
    documents = repository.load().documents
    with Isolation(at_once=False) as isolation:
        return [done for each in measured for done in verify(documents, isolation, settings.within(each))]


def reasons(done: list[Verified]) -> list[tuple[Verdict, str]]:
    """How each ended."""
    return [(one.verification.verdict, one.verification.reason) for one in done if one.verification]


def test_a_cell_for_each_combination(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch multiplies every device, GPUs the real meter alone, revisions all that."""
    monkeypatch.setenv("HOME", "/home/ada")
    matrix = MatrixConfig(
        meters=("simulated", "cuda"),
        torch={"2.11.0": "../envs/python", "2.12.0": "~/envs/python"},
        gpus={"NVIDIA H200": {"H200": 1.0}},
        revisions=("v1.0",),
    )
    made = cells(matrix, Path("/repo"), "2.13.0")
    # 2 states of the code x 2 devices x 3 versions of torch.
    assert 12 == len(set(made))
    assert [
        ("simulated", "2.13.0", None, ""),
        ("simulated", "2.11.0", None, "/repo/../envs/python"),
        ("simulated", "2.12.0", None, "/home/ada/envs/python"),
        ("cuda", "2.13.0", None, ""),
    ] == [(each.meter, each.torch, each.revision, each.interpreter) for each in made[:4]]
    assert [{}, {"H200": 1.0}] == [each.resources for each in (made[0], made[3])]
    assert "NVIDIA H200, torch 2.12.0, v1.0" == labels(made)[made[-1]]


def test_a_name_has_what_differs() -> None:
    """What all cells have in common is no part of their names."""
    two = cells(MatrixConfig(torch={"2.11.0": "python"}), Path("/repo"), "2.13.0")
    assert ["torch 2.13.0", "torch 2.11.0"] == list(labels(two).values())
    assert ["simulated"] == list(labels(two[:1]).values())


@pytest.mark.parametrize(
    ("device", "expected"),
    [("NVIDIA H200, CUDA 13.0", True), ("NVIDIA H200", True), ("NVIDIA H100 80GB HBM3, CUDA 13.0", False)],
)
def test_the_version_of_cuda_is_that_of_torch(device: str, expected: bool) -> None:
    """A GPU is known by its name; a version of torch comes with its own CUDA."""
    done = Verification(
        ticket="A-1",
        verdict=Verdict.VERIFIED,
        reason="",
        meter="cuda",
        torch="2.13.0",
        device=device,
        sweep=(),
        variants={},
        claims=(),
    )
    real = Cell(meter="cuda", torch="2.13.0", device="NVIDIA H200")
    assert expected is real.has(done)


def test_another_python_measures_with_its_torch(repository: Repository, tmp_path: Path) -> None:
    """It needs nothing of the tool's packages; its evidence is its own, and fresh in its cell alone."""
    add(repository, "A-1")
    python = other_python(tmp_path / "env", OTHER)
    there = cell(OTHER, interpreter=str(python))
    (done,) = run(repository, there)
    assert done.verification is not None
    assert (Verdict.VERIFIED, OTHER) == (done.verification.verdict, done.verification.torch)
    recorded = repository.root / f"evidence/A-1/simulated-torch{OTHER}-{SIMULATED_DEVICE}.json"
    statement = json.loads(recorded.read_text())
    (torch,) = (each for each in statement["predicate"]["configuration"] if each["name"] == "torch")
    assert OTHER == torch["annotations"]["version"]
    document = repository.load().find("A-1")
    # The verdict of the ticket is that of the tool's own torch, which has not measured.
    assert Verdict.STALE is current_verdict(document, repository.root).verdict
    known = in_cells(document, repository.root, "evidence", [there, cell()])
    assert [Verdict.VERIFIED, Verdict.UNVERIFIED] == [known[each].verdict for each in (there, cell())]
    repository.write("fixes/a_1/fix.py", FIX + "# changed\n")
    again = in_cells(document, repository.root, "evidence", [there])[there]
    assert (Verdict.STALE, ("fixes/a_1/fix.py",)) == (again.verdict, again.changed)


def test_cells_of_one_python_share_its_server(tmp_path: Path) -> None:
    """Torch is loaded once for each interpreter."""
    python = str(other_python(tmp_path / "env"))
    with Isolation(preload=(), at_once=False) as isolation:
        assert isolation.on(python) is isolation.on(python)
        assert isolation is isolation.on("")
        assert isolation is not isolation.on(python)


def test_a_python_that_is_not_what_it_should_be_measures_nothing(
    repository: Repository, tmp_path: Path
) -> None:
    """One that is not there, is none, has no torch or another one is named; the other cells are measured."""
    add(repository, "A-1")
    bare = other_python(tmp_path / "bare", torch=False)
    none = repository.write("python", "no interpreter")
    none.chmod(0o755)
    done = run(
        repository,
        cell("2.0.1", interpreter=str(tmp_path / "gone/python")),
        cell("2.0.2", interpreter=str(none)),
        cell("2.0.3", interpreter=str(bare)),
        cell("2.0.4", interpreter=str(other_python(tmp_path / "other"))),
        cell(),
    )
    assert [
        f"nothing can be measured: {tmp_path}/gone/python: No such file or directory",
        f"nothing can be measured: {none}: Exec format error",
        f"{bare}: the measuring process ended: ModuleNotFoundError: No module named 'torch'",
        f"{tmp_path}/other/bin/python has torch {own_torch()}, and not 2.0.4",
    ] == [reason for _, reason in reasons(done)[:4]]
    assert [Verdict.INCONCLUSIVE] * 4 + [Verdict.VERIFIED] == [verdict for verdict, _ in reasons(done)]
    # What was not measured is no evidence.
    assert 1 == len(list((repository.root / "evidence").rglob("*.json")))


def test_a_cell_of_a_gpu_is_measured_on_such_a_gpu(repository: Repository) -> None:
    """Of several GPUs in a machine, which a stand-in is here, those of the name; without one on none."""
    add(repository, "A-1")
    real = cell(meter="cuda", device="NVIDIA H200")
    settings = Settings(root=repository.root, evidence="e", meter="auto", timeout=60.0, memory=2 << 30)
    with TakesGpu(gpus=("0", "3")) as machine:
        for called, gpus, reason in (
            (["3"], {"verifiers/a_1.py": (("3",), False)}, "the GPU fell off the bus"),
            ([], {}, "there is no NVIDIA H200 here that the tool's own Python can use"),
        ):
            machine.slots.clear()
            machine._answers |= {TORCH: own_torch(), VISIBLE: called}
            done = verify(repository.load().documents, machine, settings.within(real))
            assert [(Verdict.INCONCLUSIVE, reason)] == reasons(list(done))
            assert gpus == machine.slots


def test_a_python_that_is_too_old_says_so(repository: Repository, tmp_path: Path) -> None:
    """The message is the tool's, not that of an option that it does not know; a stand-in is the old one."""
    add(repository, "A-1")
    old = other_python(tmp_path / "old")
    site = next((tmp_path / "old").glob("lib/python*/site-packages"))
    (site / "old.pth").write_text("import sys; sys.version_info = (3, 10, 1); sys.version = '3.10.1 (old)'\n")
    (done,) = run(repository, cell("2.0.5", interpreter=str(old)))
    ((_, reason),) = reasons([done])
    expected = f"{old}: Python 3.10.1 is too old to measure with: it takes 3.11"
    assert f"nothing can be measured: {expected}" == reason


def test_a_revision_has_evidence_of_its_own(repository: Repository, git: Git) -> None:
    """It is kept beside that of the work tree, says its commit, and decides nothing about the work tree."""
    add(repository, "A-1", fix=FOUND)
    git("add", ".")
    git("commit", "-m", "as it was")
    git("tag", "v1.0")
    repository.write("fixes/a_1/fix.py", FIX)
    before = cell(revision="v1.0")
    then, now = run(repository, before, cell())
    # At v1.0 the fix was the code as found, which reads each of the tensors.
    assert [Verdict.FAILED, Verdict.VERIFIED] == [verdict for verdict, _ in reasons([then, now])]
    file = repository.root / f"evidence/A-1/v1.0/simulated-torch{own_torch()}-{SIMULATED_DEVICE}.json"
    assert file.is_file()
    assert then.evidence is not None
    commit = git("rev-parse", "v1.0").strip()
    assert ("v1.0", commit) in [(each.name, each.value) for each in then.evidence.inputs]
    document = repository.load().find("A-1")
    assert Verdict.VERIFIED is current_verdict(document, repository.root).verdict
    known = in_cells(document, repository.root, "evidence", [before, cell()])
    assert [Verdict.FAILED, Verdict.VERIFIED] == [known[each].verdict for each in (before, cell())]
    git("tag", "--force", "v1.0", git("commit-tree", "HEAD^{tree}", "-m", "another").strip())
    again = in_cells(document, repository.root, "evidence", [before])[before]
    assert (Verdict.STALE, ("v1.0",)) == (again.verdict, again.changed)


@pytest.mark.slow
def test_a_revision_alone_is_no_verdict(repository: Repository, git: Git) -> None:
    """Whoever measured a revision has not measured the work tree."""
    add(repository, "A-1")
    git("add", ".")
    git("commit", "-m", "all")
    run(repository, cell(revision="HEAD"))
    assert Verdict.UNVERIFIED is current_verdict(repository.load().find("A-1"), repository.root).verdict


def test_an_unknown_revision_is_inconclusive(repository: Repository, git: Git) -> None:
    """It is named, with the variant that is asked for at it."""
    add(repository, "A-1")
    git("add", ".")
    git("commit", "-m", "all")
    done = run(repository, cell(revision="v9"))
    assert [(Verdict.INCONCLUSIVE, "found: there is no revision v9")] == reasons(done)
    assert done[0].verification is not None
    assert "v9" == done[0].verification.revision


@pytest.mark.slow
def test_evidence_of_the_work_tree_says_nothing_of_revisions(repository: Repository) -> None:
    """Files that were written before there was a matrix are what would be written today."""
    add(repository, "A-1")
    run(repository, cell())
    (file,) = (repository.root / "evidence/A-1").iterdir()
    assert "revision" not in json.loads(file.read_text())["predicate"]["verification"]
