"""What took longest the last time begins first."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.verify.test_session import VERIFIER, add

from finding_tickets.ground.cache import cache_folder
from finding_tickets.measure.isolation import Isolation, K, Outcome, Task
from finding_tickets.verify.pace import longest_first

if TYPE_CHECKING:
    from tests.conftest import Repository

TEN = [f"A-{number:02}" for number in range(1, 11)]
WATCH = """\
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            with open(os.environ["TORCH_LOG"], "a") as log:
                print(os.getpid(), file=log)

sys.meta_path.insert(0, Watch())
"""
# The process that imports the variant says which one it is.
SAYS_WHO = """
import os
with open(os.environ["RUN_LOG"], "a") as log:
    print(os.getpid(), file=log)
"""
WAITS_FOR_THE_SECOND = """
import time
from pathlib import Path
deadline = time.monotonic() + 20
while not Path("evidence/A-02").exists() and time.monotonic() < deadline:
    time.sleep(0.02)
"""


class OneByOne(Isolation):
    """Takes as long for a task as its payload says, on a clock of its own."""

    now = 0.0

    def run(
        self, tasks: Mapping[K, Task], on_start: Callable[[K], None] | None = None
    ) -> Iterator[tuple[K, Outcome]]:
        """Run all tasks in their order."""
        for key, task in tasks.items():
            if on_start:
                on_start(key)
            self.now += task.payload
            yield key, Outcome()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[OneByOne]:
    """The machine, whose clock is everybody's."""
    with OneByOne(at_once=False) as made:
        monkeypatch.setattr("finding_tickets.verify.pace.time.monotonic", lambda: made.now)
        yield made


def tasks(root: Path, **seconds: float) -> dict[tuple[str, str], Task]:
    """A task of each name that takes so long."""
    return {
        (name, ""): Task(target="", payload=each, root=root, timeout=1.0, memory=1)
        for name, each in seconds.items()
    }


def order(machine: OneByOne, root: Path, **seconds: float) -> list[str]:
    """In which order tasks are run."""
    return [name for (name, _), _ in longest_first(machine, tasks(root, **seconds), lambda _: None)]


def test_what_took_longest_begins_first(machine: OneByOne, tmp_path: Path) -> None:
    """At first nobody knows; then what is new comes first, and what took as long keeps its order."""
    assert ["a", "b", "c"] == order(machine, tmp_path, a=1, b=3, c=2)
    assert ["b", "c", "a"] == order(machine, tmp_path, a=1, b=3, c=9)
    assert ["d", "c", "b", "a"] == order(machine, tmp_path, a=1, b=3, c=9, d=0)
    # Of one alone, the others are not forgotten.
    assert ["a"] == order(machine, tmp_path, a=5)
    assert ["c", "a", "b"] == order(machine, tmp_path, a=1, b=3, c=9)


def test_every_register_has_its_own_times(machine: OneByOne, tmp_path: Path) -> None:
    """The same names elsewhere are other tickets."""
    assert ["a", "b"] == order(machine, tmp_path / "one", a=1, b=3)
    assert ["a", "b"] == order(machine, tmp_path / "two", a=1, b=3)
    assert ["b", "a"] == order(machine, tmp_path / "one", a=1, b=3)


@pytest.mark.parametrize("damaged", ["{", "[1]", '{"a@": "x"}', '{"a@": [1]}'])
def test_damaged_times_are_none(machine: OneByOne, tmp_path: Path, damaged: str) -> None:
    """A cache is worth no error message."""
    order(machine, tmp_path, a=1, b=3)
    cache = cache_folder()
    assert cache is not None
    (file,) = (cache / "pace").iterdir()
    file.write_text(damaged)
    assert ["a", "b"] == order(machine, tmp_path, a=1, b=3)


def test_times_of_what_was_done_before_an_interrupt_are_kept(machine: OneByOne, tmp_path: Path) -> None:
    """Of two that were to run, one did: it is no longer unknown, and comes behind the other."""
    running = longest_first(machine, tasks(tmp_path, a=1, b=3), lambda _: None)
    assert ("a", "") == next(running)[0]
    running.close()
    assert ["b", "a"] == order(machine, tmp_path, a=1, b=3)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="on one processor nothing runs beside another")
def test_ten_tickets_load_torch_once_and_stay_in_order(repository: Repository, tmp_path: Path) -> None:
    """One process loads torch, each ticket runs in another one; progress is in the order of their ends."""
    for ticket in TEN:
        add(repository, ticket, "claims: {found: {syncs: tensors}}")
        file = f"fixes/{ticket.lower().replace('-', '_')}/found.py"
        repository.write(file, SAYS_WHO + (repository.root / file).read_text())
    repository.write("verifiers/a_01.py", WAITS_FOR_THE_SECOND + VERIFIER.format(ticket="A-01"))
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch/sitecustomize.py").write_text(WATCH)
    path = os.pathsep.join([str(tmp_path / "watch"), os.environ.get("PYTHONPATH", "")])
    logs = {name: tmp_path / name for name in ("TORCH_LOG", "RUN_LOG")}
    done = subprocess.run(
        [sys.executable, "-m", "finding_tickets", "verify", "--all", "--meter", "simulated"],
        cwd=repository.root,
        env={**os.environ, "PYTHONPATH": path} | {name: str(log) for name, log in logs.items()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    loaded, ran = (logs[name].read_text().split() for name in ("TORCH_LOG", "RUN_LOG"))
    assert 1 == len(loaded)
    assert (10, set()) == (len(set(ran)), {*loaded} & {*ran})
    shown = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("A-")]
    ended = [line.partition("] ")[2].partition(":")[0] for line in done.stderr.splitlines() if line[0] == "["]
    assert TEN == shown
    assert TEN == sorted(ended)
    assert ended.index("A-02") < ended.index("A-01")
