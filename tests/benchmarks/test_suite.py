"""The suite of benchmarks measures what its page says, whatever is missing, and keeps what comes of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks.kept import Kept, Ran, SuiteRun
from benchmarks.listing import peer_in
from benchmarks.machine import Machine, this_machine
from benchmarks.processes import run
from benchmarks.result import Bound, Number, Result, Size, amount
from benchmarks.table import row
from benchmarks.ten_tickets import Took
from tests.conftest import Git, Repository

from benchmarks import __main__ as command
from benchmarks import kept, machine, page, suite, ten_tickets, verify_all
from finding_tickets.ground.cache import cache_folder

ROOT = Path(__file__).parents[2]
README = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?:`(\w+)`)? ?\| `([\w-]+)` \| .* \| (.*) \|$", re.MULTILINE)
MACHINE = Machine("An (R) CPU @ 3.0GHz", 2, 24)
MOST, LEAST = Bound(1.5), Bound(0.8, at_least=True)
EXCEEDED = Result(name="slow", what="ours / theirs", value=2.0, bound=MOST)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> SuiteRun:
    """The whole suite at its least size, as it was kept."""
    folder = tmp_path_factory.mktemp("results")
    line = [sys.executable, "-m", "benchmarks", "--least", "--results", str(folder)]
    done = subprocess.run(line, cwd=ROOT, check=False, capture_output=True, text=True)
    (file,) = folder.iterdir()
    (run,) = kept.read(file).runs
    assert 0 == done.returncode, done.stdout
    return run


def results(run: SuiteRun) -> dict[str, dict[str, Result]]:
    """The results of each benchmark, by name."""
    return {ran.name: {result.name: result for result in ran.results} for ran in run.benchmarks}


def documented() -> dict[str, dict[str, str]]:
    """The bounds on the page: of each result, for each benchmark, which only its first row names."""
    found: dict[str, dict[str, str]] = {}
    for module, name, bound in ROW.findall(README):
        if module:
            found[module] = {}
        found[list(found)[-1]][name] = bound
    return found


def a_run(*results: Result, size: Size = Size.FULL, commit: str = "0123456789") -> SuiteRun:
    """A run of one benchmark."""
    ran = Ran(name="one", seconds=1.5, load_before=0.1, load_after=0.2, results=results)
    return SuiteRun(
        date="2026-01-02T03:04:05+00:00",
        commit=commit,
        changed=False,
        size=size,
        system="Linux 6.1",
        python="CPython 3.11.7",
        torch="2.13.0",
        benchmarks=(ran,),
    )


def keep(file: Path, *runs: SuiteRun) -> Kept:
    """Runs in a file."""
    written = Kept(schema_version=kept.SCHEMA_VERSION, machine=MACHINE, runs=runs)
    kept.write(file, written)
    return written


def stand_in(**of: Result | str) -> Callable[[str, Size, Callable[[Result], None]], Ran]:
    """A way to run benchmarks that measures nothing: each has the given result, or fails with these words."""

    def ran(name: str, _: Size, on_result: Callable[[Result], None]) -> Ran:
        given = of[name]
        results, failure = ((), given) if isinstance(given, str) else ((given,), "")
        for result in results:
            on_result(result)
        return Ran(name=name, seconds=1, load_before=0, load_after=0, results=results, failure=failure)

    return ran


@pytest.mark.slow
def test_every_benchmark_of_the_page_runs(tried: SuiteRun) -> None:
    """Each runs to its end at the least size, and none is there that the page does not name."""
    assert list(documented()) == [ran.name for ran in tried.benchmarks]
    assert [""] * len(suite.NAMES) == [ran.failure for ran in tried.benchmarks]


@pytest.mark.slow
def test_the_page_has_every_result_with_its_bound(tried: SuiteRun) -> None:
    """What is claimed is what is measured: the same results, under the same bounds."""
    bounds = {
        name: {each.name: str(each.bound) for each in measured.values()}
        for name, measured in results(tried).items()
    }
    assert documented() == bounds


@pytest.mark.slow
def test_every_result_is_measured_beside_something(tried: SuiteRun) -> None:
    """A result has a number and what it was made of, or says why it has none."""
    for measured in results(tried).values():
        for result in measured.values():
            assert (result.value is None) == bool(result.missing)
            # Of a ratio to a difference of times nothing is certain at the least size, not even its sign.
            assert result.missing or any(number.value > 0 for number in result.beside)


@pytest.mark.slow
def test_amounts_are_those_of_the_least_size(tried: SuiteRun) -> None:
    """So many tickets, loops and tensors are measured as the size says."""
    every = results(tried)
    assert {"warm, 10 tickets", "warm, 2 tickets"} <= {
        each.what for each in every["listing"]["listing"].beside
    }
    # Two operations in each of 10 turns, beside 10 and 100 live tensors.
    assert "20 small" in every["simulation"]["simulation-in-place"].what
    assert "100 live tensors / beside 10" in every["simulation"]["simulation-live"].what
    assert "an index made, 10 tickets" in [each.what for each in every["index"]["index-made"].beside]
    assert "1 verifications" in [each.what for each in every["throughput"]["throughput-one"].beside]


def knows(cache: Path | None) -> bool:
    """Whether something was kept by what ran before; from now on it is."""
    assert cache is not None
    before = cache.exists()
    cache.mkdir(parents=True, exist_ok=True)
    return before


def test_ten_tickets_are_new_to_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is measured without the times of each alone, by which it would begin with the slowest one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    known: dict[str, list[bool]] = {}

    def stand_in(what: object, *_: object) -> Took:
        known.setdefault("together" if what == ten_tickets.TOGETHER else "", []).append(knows(cache_folder()))
        return Took((1.0,), 1.0)

    monkeypatch.setattr(ten_tickets, "alone", stand_in)
    monkeypatch.setattr(ten_tickets, "command", stand_in)
    for _ in range(2):
        ten_tickets.one_round(tmp_path)
    assert [False, False] == known["together"]
    assert str(tmp_path) == os.environ["XDG_CACHE_HOME"]


def test_founding_tickets_are_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with a GPU too, and whatever its user has verified before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "finding-tickets").mkdir()
    known, verifying = [], []

    def stand_in(command: Sequence[str], _: Path) -> float:
        known.append(knows(cache_folder()))
        verifying.extend([command] if "verify" in command else [])
        return 1.0

    monkeypatch.setattr(verify_all, "seconds", stand_in)
    assert [1.0] == [result.value for result in verify_all.measure(Size.LEAST)]
    assert not known[0]
    assert [["--meter", "simulated"]] * 2 == [each[4:6] for each in verifying]


def test_a_missing_peer_is_said_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without npm and a browser there is no number, and the table says what was not there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    without = page.measure(tmp_path / "page.html", 1)
    assert (None, None) == (without.value, without.holds)
    assert "not measured: there is no chromium on the path" in row(without, Size.FULL)
    assert "backlog.md@1.52.0 comes from npm, which is not installed" == peer_in(tmp_path)


def test_a_peer_that_cannot_be_installed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An npm that fails, as it does without a network, is a reason too."""
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert "npm cannot install backlog.md@1.52.0 here" == peer_in(tmp_path / "peer")


def test_a_benchmark_that_fails_says_why() -> None:
    """Its last words are kept, and nothing is raised."""
    failed = suite.ran("no_such_benchmark", Size.LEAST, lambda _: None)
    assert () == failed.results
    assert "No module named benchmarks.no_such_benchmark" in failed.failure


def test_a_benchmark_that_fails_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next one runs, both are kept, and the exit code tells."""
    good = Result(name="good", what="ours / theirs", value=1.0, bound=Bound(1.5))
    monkeypatch.setattr(suite, "ran", stand_in(startup="it broke", reading=good))
    asked = ["--only", "startup", "--only", "reading", "--results", str(tmp_path)]
    assert 1 == command.main(asked)
    assert "startup has failed: it broke" in capsys.readouterr().out
    (run,) = kept.read(kept.file_of(this_machine(), tmp_path)).runs
    assert {"startup": {}, "reading": {"good": good}} == results(run)


def test_what_was_measured_before_an_interrupt_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The benchmark at work is lost, and none before it."""

    def ran(name: str, size: Size, on_result: Callable[[Result], None]) -> Ran:
        if name == "reading":
            raise KeyboardInterrupt
        return stand_in(startup=EXCEEDED)(name, size, on_result)

    monkeypatch.setattr(suite, "ran", ran)
    assert 130 == command.main(["--only", "startup", "--only", "reading", "--results", str(tmp_path)])
    (run,) = kept.read(kept.file_of(this_machine(), tmp_path)).runs
    assert {"startup": {"slow": EXCEEDED}} == results(run)


@pytest.mark.parametrize(("size", "code"), [([], 1), (["--quick"], 0), (["--least"], 0)])
def test_a_bound_is_about_the_full_size(
    size: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound that is exceeded ends the command with 1, unless less was measured than it is about."""
    monkeypatch.setattr(suite, "ran", stand_in(startup=EXCEEDED))
    assert code == command.main(["--only", "startup", "--results", str(tmp_path), *size])


def test_only_full_runs_are_kept_unless_a_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quick run adds nothing to the results of the repository."""
    monkeypatch.setattr(suite, "ran", stand_in(startup=EXCEEDED))
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    command.main(["--only", "startup", "--quick"])
    assert [] == list(tmp_path.iterdir())
    command.main(["--only", "startup"])
    assert [kept.file_of(this_machine(), tmp_path)] == list(tmp_path.iterdir())


def test_runs_are_added_to_those_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of a machine has its runs in the order in which they were made."""
    monkeypatch.setattr(suite, "ran", stand_in(startup=EXCEEDED, reading=EXCEEDED))
    for name in ("startup", "reading"):
        command.main(["--only", name, "--results", str(tmp_path)])
    runs = kept.read(kept.file_of(this_machine(), tmp_path)).runs
    assert [["startup"], ["reading"]] == [[ran.name for ran in run.benchmarks] for run in runs]


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    """Every field of every record is as it was written, and nothing else is left in the folder."""
    beside = (Number("theirs", 0.25, "s"),)
    missing = Result(name="gone", what="ours / theirs", bound=Bound(0.8, at_least=True), missing="not here")
    full = Result(name="all", what="ours", value=0.5, unit="s", bound=Bound(1), beside=beside)
    file = tmp_path / "machine.json"
    assert keep(file, a_run(full, missing), a_run(size=Size.QUICK)) == kept.read(file)
    assert [file] == list(tmp_path.iterdir())


OF_ANOTHER = '{"schema_version": 2, "machine": {"processor": "x", "cores": 1, "memory": 1}, "runs": []}'


@pytest.mark.parametrize("content", ["{", "{}", OF_ANOTHER])
def test_a_file_that_keeps_no_results_is_left_alone(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is found out before anything is measured, and nothing is written over it."""
    monkeypatch.setattr(suite, "ran", stand_in())
    file = kept.file_of(this_machine(), tmp_path)
    file.write_text(content)
    assert 2 == command.main(["--results", str(tmp_path)])
    assert str(file) in capsys.readouterr().err
    assert content == file.read_text()


def test_results_are_shown_over_time(tmp_path: Path) -> None:
    """A column for each run with date and commit; a gap where there was no result, a mark where it broke."""
    old = Result(name="slow", what="ours / theirs", value=1.25, bound=Bound(1.5))
    new = Result(name="new", what="ours", value=3.0, unit="s")
    runs = keep(tmp_path / "f", a_run(old), a_run(EXCEEDED, new, commit="abcdef0123"), a_run(size=Size.QUICK))
    assert [
        "An (R) CPU @ 3.0GHz, 2 cores, 24 GiB: the last 2 of 3 runs",
        "      2026-01-02  2026-01-02",
        "      01234567    abcdef01",
        "slow  1.25        2.00 NO",
        "new   -           3.00 s",
    ] == list(kept.over_time(runs, Size.FULL))


def test_memory_is_in_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds are about units of 10^6 bytes, and the kernel counts 1024 of them at a time."""
    wait4 = os.wait4

    def waited(pid: int, options: int) -> tuple[int, int, SimpleNamespace]:
        return *wait4(pid, options)[:2], SimpleNamespace(ru_utime=1.0, ru_stime=0.5, ru_maxrss=1000)

    monkeypatch.setattr(os, "wait4", waited)
    # 1000 * 1024 bytes.
    assert 1.024 == pytest.approx(run([sys.executable, "-c", ""], os.environ).megabytes, abs=1e-9)


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("src/finding_tickets/__init__.py", True),
        ("tickets/B7-PT-02.md", True),
        ("fixes/b7_pt_02/fix.py", True),
        ("verifiers/b7_pt_02.py", True),
        ("evidence/B7-PT-02/simulated.json", True),
        ("benchmarks/machine.py", True),
        ("benchmarks/results/machine.json", False),
        ("docs/README.md", False),
    ],
)
def test_all_that_is_measured_is_looked_at_for_changes(
    path: str, *, changed: bool, repository: Repository, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code, and the tickets of this repository with all that their measurements are made of."""
    monkeypatch.setattr(machine, "ROOT", repository.root)
    git("commit", "--allow-empty", "-m", "nothing")
    assert not machine.is_changed()
    repository.write(path, "changed")
    assert changed is machine.is_changed()


def test_machines_of_a_kind_share_a_file(tmp_path: Path) -> None:
    """The name is made of what the machine is, and fit for a file."""
    assert tmp_path / "an-r-cpu-3-0ghz-2-cores-24-gib.json" == kept.file_of(MACHINE, tmp_path)


@pytest.mark.parametrize(
    ("bound", "value", "holds"),
    [(MOST, 1.5, True), (MOST, 1.51, False), (LEAST, 0.8, True), (LEAST, 0.79, False)],
)
def test_a_bound_holds_up_to_its_limit(bound: Bound, value: float, *, holds: bool) -> None:
    """At most is at most, and at least is at least."""
    assert holds is Result(name="a", what="b", value=value, bound=bound).holds


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0814, "0.081 s"), (0.814, "0.81 s"), (8.14, "8.14 s"), (81.44, "81.4 s"), (8144.2, "8,144 s")],
)
def test_an_amount_has_as_many_digits_as_say_something(value: float, text: str) -> None:
    """Three of them, or two below one."""
    assert text == amount(value, "s")
