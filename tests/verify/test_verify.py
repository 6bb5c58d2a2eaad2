"""Verifying documents from end to end on the simulated device."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from tests.conftest import Repository
from tests.verify.conftest import (
    CLAIMS,
    FEW_POINTS,
    FIX,
    FOUND,
    TakesGpu,
    alive,
    verify_all,
)
from tests.verify.conftest import add_with_few_points as add

from finding_tickets.measure.processes.isolation import Isolation, Task, TaskOutcome
from finding_tickets.measure.processes.used_files import UsedFile, UsedFiles
from finding_tickets.measure.tasks import FunctionPath
from finding_tickets.model.verification import Evidence, MeasuredTicket
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.files import ABSENT
from finding_tickets.verify.evidence import file_inputs
from finding_tickets.verify.plan import Plan
from finding_tickets.verify.verify import Settings, verify
from simcuda.real import why_not


def test_a_fix_that_is_the_code_as_found_is_no_fix(repository: Repository, isolation: Isolation) -> None:
    """Neither words nor layout make it another one; other code that costs the same is one."""
    words = FOUND.replace("(tensors):", '(tensors):\n    """One wait."""')
    held = CLAIMS.replace("syncs: 1", "syncs: tensors")
    add(repository, "A-1", held, fix=f"# The same.\n{words}")
    add(repository, "A-2", fix=FOUND)
    add(repository, "A-3", held, fix=FOUND.replace(".item()", ".tolist()"))
    add(repository, "A-4", f"{held}\ndecision: keep", fix=FOUND)
    found = {name: one.verification for name, one in verify_all(repository, isolation).items()}
    said = {name: (one.verdict, one.reason.split(";")[0]) for name, one in found.items() if one}
    same = "found and fix are the same code"
    assert {
        "A-1": (Verdict.INCONCLUSIVE, same),
        "A-2": (Verdict.FAILED, same),
        "A-3": (Verdict.VERIFIED, "every claim about found and fix holds"),
        "A-4": (Verdict.VERIFIED, "every claim that justifies keeping the code as found holds"),
    } == said


def test_a_claim_about_an_unknown_variable_is_bad_data(repository: Repository, isolation: Isolation) -> None:
    """Only the sweep knows the variables, so it shows after measuring; file and line are the claim's."""
    add(repository, "B-1", claims="claims:\n  found:\n    syncs: 4*tensor")
    add(repository, "C-1")
    done = verify_all(repository, isolation)
    error = done["B-1"].error
    assert error is not None
    lines = (repository.root / "tickets/B-1.md").read_text(encoding="utf-8").split("\n")
    assert ("tickets/B-1.md", "    syncs: 4*tensor") == (error.file, lines[(error.line or 0) - 1])
    assert "did you mean 'tensors'? known: tensors, size" == error.hint
    assert [] == list(repository.root.glob("evidence/B-1/*"))
    assert done["C-1"].verification is not None


@pytest.mark.skipif(why_not() is None, reason="there is a GPU that can be measured")
def test_a_real_gpu_is_not_pretended(repository: Repository, isolation: Isolation) -> None:
    """Without one the verdict is inconclusive, says what is missing, and leaves no evidence."""
    add(repository, "A-1")
    found = verify_all(repository, isolation, meter="cuda")["A-1"].verification
    assert found is not None
    assert (Verdict.INCONCLUSIVE, "cuda") == (found.verdict, found.meter)
    assert f"no real GPU can be measured here: {why_not()}" == found.reason
    assert not (repository.root / "evidence").exists()


def test_what_fails_on_the_gpu_that_was_taken_is_told_of_it(repository: Repository) -> None:
    """With ``auto`` the meter is settled before measuring: a failure of a GPU is none of the simulation."""
    add(repository, "A-1")
    with TakesGpu() as machine:
        found = verify_all(repository, machine, meter="auto")["A-1"].verification
    assert found is not None
    assert ("cuda", "the GPU fell off the bus", ["cuda", "cuda"]) == (
        found.meter,
        found.reason,
        machine.meters,
    )
    assert not (repository.root / "evidence").exists()


def test_a_tool_that_does_not_start_leaves_the_evidence_alone(repository: Repository) -> None:
    """A broken installation says nothing about the code that was verified before."""
    add(repository, "A-1")
    with Isolation(preload=("no_such_module",)) as broken:
        found = verify_all(repository, broken)["A-1"].verification
    assert found is not None
    assert Verdict.INCONCLUSIVE is found.verdict
    assert not (repository.root / "evidence").exists()


def test_evidence_that_cannot_be_written_is_an_error(repository: Repository, isolation: Isolation) -> None:
    """The result is shown all the same, with the reason why it was not kept."""
    add(repository, "A-1")
    repository.write("evidence", "a file where the folder should be")
    done = verify_all(repository, isolation)["A-1"]
    assert done.verification is not None
    assert done.error is not None
    assert (Verdict.VERIFIED, "evidence") == (done.verification.verdict, done.error.file)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (errno.ENOSPC, "it cannot be prepared: No space left on device"),
        (errno.EACCES, "it cannot be prepared: Permission denied"),
    ],
)
def test_a_document_without_room_for_its_results_leaves_the_others_alone(
    repository: Repository,
    isolation: Isolation,
    monkeypatch: pytest.MonkeyPatch,
    trouble: int,
    reason: str,
) -> None:
    """Its folder is the last thing that fits on the disk or not; nothing is recorded of it."""
    add(repository, "A-1")
    add(repository, "A-2")
    full = iter((True,))
    actual = Path.mkdir

    def mkdir(path: Path, *arguments: Any, **more: Any) -> None:
        if Path(isolation.folder) in path.parents and next(full, False):
            raise OSError(trouble, os.strerror(trouble))
        actual(path, *arguments, **more)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    done = verify_all(repository, isolation)
    first, second = (done[name].verification for name in ("A-1", "A-2"))
    assert first is not None
    assert second is not None
    assert reason == first.reason
    assert (Verdict.INCONCLUSIVE, Verdict.VERIFIED) == (first.verdict, second.verdict)
    assert ["A-2"] == [folder.name for folder in (repository.root / "evidence").iterdir() if folder.is_dir()]


BROKEN = {"helpers/__init__.py": "", "helpers/sizes.py": "from helpers.units import BLOCK\n"}


def test_code_that_cannot_be_imported_is_stale_once_it_has_changed(
    repository: Repository, isolation: Isolation
) -> None:
    """The file with the import that fails was read, and counts."""
    add(repository, "A-1", verifier=f"from helpers import sizes\n{FEW_POINTS.format(ticket='A-1')}")
    for path, content in BROKEN.items():
        repository.write(path, content)
    found = verify_all(repository, isolation)["A-1"].verification
    assert found is not None
    assert "No module named 'helpers.units'" in found.reason
    document = repository.load().find("A-1")
    assert Verdict.INCONCLUSIVE is repository.measured(document.id.value).verdict
    repository.write("helpers/sizes.py", "BLOCK = 512\n")
    current = repository.measured(document.id.value)
    assert (Verdict.STALE, ("helpers/sizes.py",)) == (current.verdict, current.changed)


EDITING = """
from pathlib import Path

file = Path(__file__).parents[1] / "fixes/a_1/found.py"
file.write_text(file.read_text() + "# Edited.\\n")
"""
MENDING = """
from pathlib import Path

Path(__file__).write_text("# Mended.\\n")
raise ValueError("not yet mended")
"""
MENDING_A_HELPER = """
from pathlib import Path

import helper

Path(helper.__file__).write_text("# Mended.\\n")
raise ValueError("not yet mended")
"""
EDITED_MEANWHILE = FEW_POINTS.format(ticket="A-1").replace(
    "    return ([", f"{indent(EDITING, '    ')}\n    return (["
)


@pytest.mark.parametrize(
    ("verifier", "verdict", "edited"),
    [
        (EDITED_MEANWHILE, Verdict.VERIFIED, "fixes/a_1/found.py"),
        (MENDING, Verdict.INCONCLUSIVE, "verifiers/a_1.py"),
        (MENDING_A_HELPER, Verdict.INCONCLUSIVE, "helper.py"),
    ],
    ids=["code that was measured", "code that could not be imported", "what that imported"],
)
def test_evidence_is_of_code_as_it_was_measured(
    repository: Repository, isolation: Isolation, verifier: str, verdict: Verdict, edited: str
) -> None:
    """A file that is edited while the measurement runs makes its evidence stale, and is never certified."""
    add(repository, "A-1", verifier=verifier)
    repository.write("helper.py", "")
    found = verify_all(repository, isolation)["A-1"].verification
    current = repository.measured("A-1")
    assert found is not None
    assert (verdict, Verdict.STALE, (edited,)) == (found.verdict, current.verdict, current.changed)


@pytest.mark.parametrize("edited", [None, CLAIMS.replace("syncs: 1", "syncs: 2")], ids=["removed", "edited"])
def test_evidence_is_of_the_claims_that_were_checked(
    repository: Repository, isolation: Isolation, monkeypatch: pytest.MonkeyPatch, edited: str | None
) -> None:
    """A ticket that is edited or removed while it is measured ends no run; edited, it is stale."""
    add(repository, "A-1")
    (document,) = repository.load().documents

    def run_edited(tasks: dict[Any, Task]) -> Iterator[tuple[Any, TaskOutcome]]:
        # The tasks are there: the document has been read.
        file = repository.root / document.path
        if edited is None:
            file.unlink(missing_ok=True)
        else:
            file.write_text(file.read_text().replace(CLAIMS, edited))
        yield from Isolation.run(isolation, tasks)

    settings = Settings(
        root=repository.root, evidence="evidence", meter="simulated", timeout=60.0, memory=2 << 30
    )
    monkeypatch.setattr(isolation, "run", run_edited)
    (done,) = verify([document], isolation, settings)
    assert done.verification is not None
    assert (Verdict.VERIFIED, None) == (done.verification.verdict, done.error)
    add(repository, "A-1", claims=edited or CLAIMS)
    current = repository.measured("A-1")
    assert (("Remediation",) if edited else ()) == current.changed


@pytest.mark.slow
def test_nothing_is_kept_of_what_is_done(
    repository: Repository, isolation: Isolation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of thousands of tickets, memory holds the plans that are still to be measured, and one measurement."""
    # What was planned first ends last, so that the last of the plans is not at hand by chance.
    others_are_done = tmp_path_factory.mktemp("outside") / "done"
    if len(os.sched_getaffinity(0)) == 1:
        others_are_done.touch()
    waits = f"while not os.path.exists({str(others_are_done)!r}):\n    time.sleep(0.01)\n"
    add(repository, "A-0", fix=f"import os\nimport time\n{waits}{FIX}")
    for number in range(1, 5):
        add(repository, f"A-{number}")
    settings = Settings(
        root=repository.root, evidence="evidence", meter="simulated", timeout=60.0, memory=2 << 30
    )
    kinds = (Plan, Task, TaskOutcome, MeasuredTicket, Evidence)
    before = alive(*kinds)
    left = []
    for _ in verify(repository.load().documents, isolation, settings):
        left.append([now - then for now, then in zip(alive(*kinds), before, strict=True)])
        if len(left) == 4:
            others_are_done.touch()
    # Nothing of what is done is at hand: for each ticket that is still to be done two tasks, or one more that
    # compares.
    assert [4, 3, 2, 1, 0] == [row[0] for row in left]
    assert all(row[1] <= 3 * row[0] for row in left)
    # Of the slow ticket and of the next two, found may have ended: its answer, and the files that it used.
    # The last outcome is there with and without these, too. Of four done tickets there would be 16 more.
    assert all(row[2] <= 3 * 2 + 2 for row in left)
    assert [0, 2, 0, 1] == left[-1][1:]
    assert all(row[3] <= 2 and row[4] == 1 for row in left)


def test_a_file_that_was_edited_between_two_processes_is_none_that_was_measured(
    repository: Repository, tmp_path: Path
) -> None:
    """Evidence that names it so is stale, whichever it is now; the other files are as they were."""
    repository.ticket("A-1")
    (document,) = repository.load().documents
    variants = {name: FunctionPath(f"{name}.py", "check") for name in ("found", "fix")}
    todo = Plan(document, tmp_path, tmp_path, tmp_path, "v.py", variants)
    for name in ("edited.py", "same.py"):
        (tmp_path / name).write_text("1")
    state = (tmp_path / "same.py").stat()
    same, edited = (f"{tmp_path}/{name}" for name in ("same.py", "edited.py"))
    outcomes = []
    for size in (1, 2):
        times = (state.st_mtime_ns, state.st_ctime_ns)
        files = (UsedFile(same, False, 1, *times), UsedFile(edited, False, size, *times))
        outcomes.append(TaskOutcome(used=UsedFiles(state.st_ctime_ns + 1, files)))
    values = {each.name: each.value for each in file_inputs(outcomes, todo)}
    # The first digits of the SHA-256 of "1".
    one = hashlib.sha256(b"1").hexdigest()[:16]
    assert (ABSENT, one) == (values["edited.py"], values["same.py"])
