"""Tickets through commits: what is measured, and what is known without measuring."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.verify.conftest import CLAIMS, FIX, FOUND, VERIFIER, add

from finding_tickets.errors import UsageError
from finding_tickets.history.tickets_at_commits import MeasuredHistory, measure_history
from finding_tickets.history.timeline import MeasuredState
from finding_tickets.history.walk import UnmeasuredCommit
from finding_tickets.measure.processes.isolation import Isolation, K, Task, TaskOutcome
from finding_tickets.measure.tasks import DEVICES, SIMULATED_DEVICE, TARGET, VISIBLE, Job
from finding_tickets.register.staleness import own_torch
from finding_tickets.verify.matrix import Cell
from finding_tickets.verify.verify import Settings, verify

if TYPE_CHECKING:
    from tests.conftest import Git, Repository

SECTION = f"## Remediation\n\n```yaml\n{CLAIMS}\n```\n"
OPTIONAL = """
try:
    from pkg.fast import read
except ImportError:
    from pkg.reading import read


def check(tensors):
    return read(tensors)
"""
HELPED = "from pkg.reading import read\n\n\ndef check(tensors):\n    return read(tensors)\n"
ONE_BY_ONE = "def read(tensors):\n    return sum(tensor.sum().item() for tensor in tensors)\n"
TOGETHER = f"import torch\n\n\n{FIX.partition('import torch')[2].strip()}\n".replace("check", "read")


class OnGpu(Isolation):
    """Stands for a machine with a GPU of this name, on which code costs what it does on the simulated one."""

    def __init__(self, name: str) -> None:
        super().__init__(at_once=False)
        self._answers = {VISIBLE: ["0"], DEVICES: [f"{name}, CUDA 13.0"]}

    def run(
        self, tasks: Mapping[K, Task], on_start: Callable[[K], None] | None = None
    ) -> Iterator[tuple[K, TaskOutcome]]:
        """Say what the GPU is called, and measure without one."""
        orders = {name: task for name, task in tasks.items() if task.target not in self._answers}
        for name in tasks.keys() - orders.keys():
            yield name, TaskOutcome(value=self._answers[tasks[name].target])
        for name, task in orders.items():
            if isinstance(task.payload, Job):
                orders[name] = replace(task, payload=replace(task.payload, meter="simulated"), gpus=())
        yield from super().run(orders, on_start)


class Past:
    """A repository with commits by their messages, and the survey of them."""

    def __init__(self, repository: Repository, git: Git, isolation: Isolation) -> None:
        self.repository, self._git, self.isolation = repository, git, isolation
        self.commits: dict[str, str] = {}
        self.told: list[str] = []

    def commit(self, message: str, files: Mapping[str, str | None] | None = None) -> str:
        """Write files, or remove them, and commit all that is there."""
        for path, text in (files or {}).items():
            if text is None:
                (self.repository.root / path).unlink()
            else:
                self.repository.write(path, text)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "-m", message)
        self.commits[message] = self._git("rev-parse", "HEAD").strip()
        return self.commits[message]

    @property
    def settings(self) -> Settings:
        """How to measure."""
        root = self.repository.root
        return Settings(root=root, evidence="evidence", meter="simulated", timeout=60.0, memory=2 << 30)

    def verify(self) -> None:
        """Record the evidence of all tickets of the work tree."""
        assert all(
            done.evidence for done in verify(self.repository.load().documents, self.isolation, self.settings)
        )

    def survey(self, *ids: str, since: str = "", **more: Any) -> MeasuredHistory:
        """What is known of tickets since the first commit that was made here, or a later one."""
        begin = self.commits.get(since, since) or next(iter(self.commits.values()))
        settings = replace(self.settings, record=False, **more)
        return measure_history(settings, self.isolation, begin, ids, self.told.append)


@pytest.fixture
def past(repository: Repository, git: Git, isolation: Isolation) -> Past:
    """A repository without commits."""
    return Past(repository, git, isolation)


def measured(done: MeasuredHistory) -> dict[str, int]:
    """How many measurements each ticket took."""
    return {course.ticket: course.measured for course in done.courses}


def laws(done: MeasuredHistory, name: str = "fix.syncs") -> list[str]:
    """The law of one metric at each commit of the only ticket, or why it is not known."""
    (course,) = done.courses
    return [
        result.why
        if isinstance(result, UnmeasuredCommit)
        else (metrics[name].law if name in (metrics := MeasuredState.of(result).metrics) else result.reason)
        for result in course.results
    ]


def begin(past: Past, *ids: str) -> None:
    """Commit tickets of which the fix reads once."""
    for name in ids or ("A-1",):
        add(past.repository, name)
    past.commit("begun")


def test_each_distinct_input_is_measured_once(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three tickets at eight commits: as often as their code is new, counted by what the server is told."""
    sent: list[str] = []
    run = Isolation.run

    def counted(self: Isolation, tasks: dict[K, Task], *rest: Any) -> Iterator[tuple[K, TaskOutcome]]:
        sent.extend(task.target for task in tasks.values())
        return run(self, tasks, *rest)

    monkeypatch.setattr(Isolation, "run", counted)
    begin(past, "A-1", "A-2", "A-3")
    past.commit("a page", {"README.md": "one"})
    past.commit("undone", {"fixes/a_1/fix.py": FOUND})
    past.commit("another page", {"README.md": "two", "src/elsewhere.py": "x = 1\n"})
    past.commit("done again", {"fixes/a_1/fix.py": FIX})
    past.commit("a comment", {"fixes/a_2/fix.py": f"# said\n{FIX}"})
    past.commit("the comment is gone", {"fixes/a_2/fix.py": FIX})
    past.commit("nothing")
    done = past.survey()
    # have two kinds of code each, to which they come back; A-3 has one.
    assert {"A-1": 2, "A-2": 2, "A-3": 1} == measured(done)
    # Each measures two variants.
    assert (5 * 2, 5) == (sent.count(TARGET), len(past.told))
    verdicts = [[str(getattr(each, "verdict", each)) for each in course.results] for course in done.courses]
    expected = ["verified"] * 2 + ["failed"] * 2 + ["verified"] * 4
    assert [expected, ["verified"] * 8, ["verified"] * 8] == verdicts
    again = past.survey()
    assert ({"A-1": 0, "A-2": 0, "A-3": 0}, 5 * 2) == (measured(again), sent.count(TARGET))
    assert done.courses[0].results == again.courses[0].results


@pytest.mark.slow
def test_code_that_only_running_it_names_counts(past: Past) -> None:
    """A helper that a variant imports is an input of that ticket; other code beside it is none."""
    add(past.repository, "A-1", fix=HELPED)
    add(past.repository, "A-2")
    past.commit("begun", {"src/pkg/__init__.py": "", "src/pkg/reading.py": TOGETHER})
    past.commit("beside", {"src/pkg/other.py": "x = 1\n"})
    past.commit("undone", {"src/pkg/reading.py": ONE_BY_ONE})
    past.commit("done again", {"src/pkg/reading.py": TOGETHER})
    assert {"A-1": 2, "A-2": 1} == measured(past.survey())
    assert ["1", "1", "tensors", "1"] == laws(past.survey("a-1"))


def test_a_module_that_code_can_do_without_is_an_input_once_it_is_there(past: Past) -> None:
    """Whoever tries to import it and goes on without it has another result from the commit that adds it."""
    add(past.repository, "A-1", fix=OPTIONAL)
    past.commit("begun", {"src/pkg/__init__.py": "", "src/pkg/reading.py": ONE_BY_ONE})
    past.survey()
    past.commit("beside", {"src/pkg/other.py": "x = 1\n"})
    past.commit("there", {"src/pkg/fast.py": TOGETHER})
    past.commit("gone", {"src/pkg/fast.py": None})
    done = past.survey()
    assert (["tensors", "tensors", "1", "tensors"], {"A-1": 1}) == (laws(done), measured(done))


@pytest.mark.slow
def test_evidence_does_not_speak_of_a_module_that_came_later(past: Past) -> None:
    """Its digests are those of what was imported, and say nothing of what would be now."""
    add(past.repository, "A-1", fix=OPTIONAL)
    past.commit("begun", {"src/pkg/__init__.py": "", "src/pkg/reading.py": ONE_BY_ONE})
    past.verify()
    past.commit("evidence")
    past.commit("there", {"src/pkg/fast.py": TOGETHER})
    after = past.survey()
    assert (["tensors", "tensors", "1"], {"A-1": 1}) == (laws(after), measured(after))


def test_a_module_that_comes_before_one_is_another_input(past: Past) -> None:
    """A package of the same name is what Python imports, though the module is as it was."""
    add(past.repository, "A-1", fix=HELPED)
    past.commit("begun", {"src/pkg/__init__.py": "", "src/pkg/reading.py": TOGETHER})
    past.commit("a package", {"src/pkg/reading/__init__.py": ONE_BY_ONE})
    past.commit("gone", {"src/pkg/reading/__init__.py": None})
    done = past.survey()
    assert (["1", "tensors", "1"], {"A-1": 2}) == (laws(done), measured(done))


@pytest.mark.slow
def test_what_does_not_run_is_tried_once(past: Past) -> None:
    """Until something that it says it imports is there, or the time-out is another; nothing else counts."""
    begin(past)
    past.commit("broken", {"fixes/a_1/fix.py": f"import pkg.gone\n{FIX}"})
    past.commit("beside", {"README.md": "one", "src/other.py": "x = 1\n", "fixes/other.py": ""})
    past.commit("a part", {"src/pkg/gone/__init__.py": "from . import helper\n"})
    past.commit("whole", {"src/pkg/gone/helper.py": "x = 1\n"})
    first = past.survey()
    assert {"A-1": 4} == measured(first)
    (course,) = first.courses
    missing = "fix: fixes/a_1/fix.py:1: ModuleNotFoundError: No module named 'pkg'"
    cannot = "fix: src/pkg/gone/__init__.py:1: ImportError: cannot import name 'helper' from"
    expected = ["every claim", missing, missing, cannot, "every claim"]
    reasons = [result.reason for result in course.results if not isinstance(result, UnmeasuredCommit)]
    assert expected == [why[: len(start)] for start, why in zip(expected, reasons, strict=True)]
    assert {"A-1": 0} == measured(past.survey())
    # Both kinds of failure are tried again, the measurements are not.
    assert {"A-1": 2} == measured(past.survey(timeout=61.0))


def test_a_variant_that_is_not_there_yet_is_looked_for_again(past: Past) -> None:
    """Nothing is measured while the file is missing, which is said, and it is once it is there."""
    variants = "variants: {found: 'fixes/a_1/found.py:check', fix: 'src/later.py:check'}"
    add(past.repository, "A-1", f"{variants}\n{CLAIMS}")
    past.commit("begun")
    past.commit("beside", {"README.md": "one"})
    past.commit("there", {"src/later.py": FIX})
    done = past.survey()
    found = [law.rpartition(": ")[2] for law in laws(done)]
    missing = "there is no file src/later.py"
    assert ([missing, missing, "1"], {"A-1": 1}) == (found, measured(done))
    assert {"A-1": 0} == measured(past.survey())


def test_a_link_is_what_it_leads_to(past: Past) -> None:
    """A verifier that is a link to another one is another input where that one is."""
    begin(past)
    past.commit("moved", {"shared/verifier.py": VERIFIER.format(ticket="A-1"), "verifiers/a_1.py": None})
    (past.repository.root / "verifiers").mkdir(exist_ok=True)
    (past.repository.root / "verifiers/a_1.py").symlink_to("../shared/verifier.py")
    past.commit("linked")
    past.commit(
        "edited", {"shared/verifier.py": VERIFIER.format(ticket="A-1").replace("(13, 100)", "(9, 9)")}
    )
    done = past.survey()
    assert (["1", "it has no verifier", "1", "1"], {"A-1": 2}) == (laws(done), measured(done))


def test_code_behind_a_linked_folder_is_what_the_link_leads_to(past: Past) -> None:
    """What failed there is tried again once it is mended, and what did not is measured once."""
    variants = "variants: {found: 'fixes/a_1/found.py:check', fix: 'pkg.mod:check'}"
    add(past.repository, "A-1", f"{variants}\n{CLAIMS}")
    (past.repository.root / "src").mkdir()
    (past.repository.root / "src/pkg").symlink_to("../lib/pkg")
    past.commit("broken", {"lib/pkg/__init__.py": "", "lib/pkg/mod.py": f"import gone\n{FIX}"})
    past.commit("mended", {"lib/pkg/mod.py": FIX})
    past.commit("beside", {"README.md": "one"})
    past.commit("undone", {"lib/pkg/mod.py": FOUND})
    done = past.survey()
    missing = "fix: src/pkg/mod.py:1: ModuleNotFoundError: No module named 'gone'"
    assert ([missing, "1", "1", "tensors"], {"A-1": 3}) == (laws(done), measured(done))


def test_a_commit_without_the_ticket_says_why(past: Past, repository: Repository) -> None:
    """Not written yet, without a verifier, not understood, a configuration that is wrong."""
    past.commit("before", {"tickets/README.md": "none yet\n"})
    repository.ticket("A-1")
    past.commit("no verifier")
    add(repository, "A-1", "claims: {found: {syncs: tensors}")
    past.commit("not understood")
    add(repository, "A-1")
    past.commit("configured", {"tickets.toml": "tickets = 1\n"})
    past.commit("sound", {"tickets.toml": None})
    add(repository, "A-1", "claims: {found: {sinks: tensors}}")
    past.commit("no such metric")
    done = past.survey("A-1")
    (course,) = done.courses
    whys = [each.why if isinstance(each, UnmeasuredCommit) else each.verdict for each in course.results]
    starts = [
        "there is no such ticket",
        "it has no verifier",
        "tickets/A-1.md:",
        "tickets.toml: tickets: must be",
        "verified",
        "tickets/A-1.md:",
    ]
    assert starts == [why[: len(start)] for start, why in zip(starts, whys, strict=True)]
    assert ("unknown metric 'sinks'" in whys[-1], {"A-1": 1}) == (True, measured(done))


def test_a_register_in_a_folder_of_the_repository_has_its_own_files(
    tmp_path: Path, git: Git, isolation: Isolation, repository: Repository
) -> None:
    """What stands beside the folder is not the register's."""
    inside = type(repository)(repository.root / "part")
    add(inside, "A-1")
    past = Past(inside, git, isolation)
    past.commit("begun")
    repository.write("fixes/a_1/fix.py", FOUND)
    past.commit("beside")
    inside.write("fixes/a_1/fix.py", FOUND)
    past.commit("undone")
    done = past.survey()
    assert (["1", "1", "tensors"], {"A-1": 2}) == (laws(done), measured(done))
    assert tmp_path == repository.root


def test_evidence_in_a_commit_is_believed_where_it_is_of_what_is_there(past: Past) -> None:
    """Nothing is measured of a commit whose evidence has the digests of its files; else it is."""
    begin(past)
    past.verify()
    past.commit("evidence")
    past.commit("undone, with the evidence left", {"fixes/a_1/fix.py": FOUND})
    done = past.survey()
    # The first commit has the files that the evidence of the second one is of.
    assert (["1", "1", "tensors"], {"A-1": 1}) == (laws(done), measured(done))


@pytest.mark.slow
@pytest.mark.parametrize("now", [FIX, None])
def test_evidence_of_a_revision_is_of_no_commit(past: Past, git: Git, now: str | None) -> None:
    """Though its inputs are those of the commit, which has other code in the place of the fix, or none."""
    variants = "variants: {found: 'clip:check@v1.0', fix: 'clip:check'}"
    add(past.repository, "A-1", f"{variants}\n{CLAIMS}")
    past.commit("old", {"src/clip.py": FOUND})
    git("tag", "v1.0")
    past.commit("now", {"src/clip.py": now})
    cell = Cell(meter="simulated", torch=own_torch(), device=SIMULATED_DEVICE, revision="v1.0")
    (done,) = verify(past.repository.load().documents, past.isolation, past.settings.within(cell))
    assert done.evidence
    assert (past.repository.root / "evidence/A-1/v1.0").is_dir()
    past.commit("evidence of the revision")
    law = "1" if now else "fix: there is no module clip"
    assert [law, law] == laws(past.survey(since="now"))


def test_a_ticket_that_moved_is_the_same_and_code_that_moved_is_not(past: Past) -> None:
    """The file of a ticket is no input; the name of code is one, for the ticket states it."""
    variants = "variants: {found: 'fixes/a_1/found.py:check', fix: 'src/old.py:check'}"
    add(past.repository, "A-1", f"{variants}\n{CLAIMS}")
    past.commit("begun", {"src/old.py": FIX})
    text = (past.repository.root / "tickets/A-1.md").read_text()
    past.commit("ticket moved", {"tickets/A-1.md": None, "tickets/closed/A-1_it_waits.md": text})
    moved = text.replace("src/old.py", "src/new.py")
    past.commit(
        "code moved", {"tickets/closed/A-1_it_waits.md": moved, "src/old.py": None, "src/new.py": FIX}
    )
    done = past.survey()
    assert (["1", "1", "1"], {"A-1": 2}) == (laws(done), measured(done))


@pytest.mark.slow
def test_a_revision_in_a_ticket_is_the_one_that_the_repository_has_now(past: Past, git: Git) -> None:
    """A tag that moves is another input; a name that is nowhere leaves a gap."""
    variants = "variants: {found: 'fixes/a_1/found.py:check', fix: 'src/code.py:check@past'}"
    add(past.repository, "A-1", f"{variants}\n{CLAIMS}")
    past.commit("once", {"src/code.py": FIX})
    past.commit("then", {"src/code.py": FOUND})
    past.commit("page", {"README.md": "one"})
    past.commit("now", {"src/code.py": "def check(tensors): ...\n"})
    for commit, law, number in [("once", "1", 1), ("then", "tensors", 1), ("once", "1", 0)]:
        git("tag", "--force", "past", past.commits[commit])
        done = past.survey(since="page")
        assert ([law, law], {"A-1": number}) == (laws(done), measured(done))
    git("tag", "--delete", "past")
    assert ["fix: there is no revision past"] * 2 == laws(past.survey(since="page"))


@pytest.mark.slow
def test_what_was_measured_on_one_gpu_is_measured_on_another(past: Past) -> None:
    """They may cost differently; what is known of either stays known."""
    begin(past)
    for name, number in [("H100", 1), ("H100", 0), ("H200", 1), ("H100", 0)]:
        with OnGpu(name) as past.isolation:
            assert {"A-1": number} == measured(past.survey(meter="cuda"))


def test_git_is_not_asked_for_each_commit(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known already takes as many processes for ten commits of two tickets as for two."""
    begin(past, "A-1", "A-2")
    for number in range(9):
        past.commit(f"page {number}", {"README.md": str(number)})
    past.survey()
    started: list[Sequence[str]] = []
    start = subprocess.Popen.__init__

    def noted(self: Any, arguments: Sequence[str], *rest: Any, **named: Any) -> None:
        started.append(arguments)
        start(self, arguments, *rest, **named)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    few = len(past.survey(since="page 7").nodes), len(started)
    started.clear()
    assert (10, few[1]) == (len(past.survey().nodes), len(started))
    # The revision (two), the commits, the folder, the objects, and whether the clone is shallow.
    assert (2, 6) == few


@pytest.mark.slow
def test_a_survey_that_is_interrupted_goes_on(past: Past) -> None:
    """What was measured before stays known."""
    begin(past, "A-1", "A-2", "A-3")

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with Isolation(at_once=False) as isolation, pytest.raises(KeyboardInterrupt):
        measure_history(past.settings, isolation, past.commits["begun"], (), interrupt)
    assert 2 == sum(measured(past.survey()).values())


def test_what_makes_no_sense_is_refused(past: Past, git: Git) -> None:
    """Before anything is measured, with what to do."""
    begin(past)
    git("switch", "--quiet", "--create", "side")
    aside = past.commit("aside")
    git("switch", "--quiet", "main")
    for since, ids, message in [
        ("nowhere", (), "--since nowhere: there is no revision nowhere"),
        (aside, (), "not among the commits that led to HEAD"),
        ("HEAD", ("A-11",), "no document has the ID 'a-11' at any of the commits (did you mean"),
    ]:
        with pytest.raises(UsageError, match=re.escape(message)):
            past.survey(*ids, since=since)
    assert [] == past.told
