"""The suite of benchmarks measures what its page says, whatever is missing, and keeps what comes of it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.kept import Kept, Ran, SuiteRun
from benchmarks.machine import Machine, this_machine
from benchmarks.result import Bound, Number, Result, Size

from benchmarks import __main__ as command
from benchmarks import kept, suite

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


@pytest.mark.parametrize(("size", "code"), [([], 1), (["--quick"], 0), (["--least"], 0)])
def test_a_bound_is_about_the_full_size(
    size: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound that is exceeded ends the command with 1, unless less was measured than it is about."""
    monkeypatch.setattr(suite, "ran", stand_in(startup=EXCEEDED))
    assert code == command.main(["--only", "startup", "--results", str(tmp_path), *size])


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    """Every field of every record is as it was written, and nothing else is left in the folder."""
    beside = (Number("theirs", 0.25, "s"),)
    missing = Result(name="gone", what="ours / theirs", bound=Bound(0.8, at_least=True), missing="not here")
    full = Result(name="all", what="ours", value=0.5, unit="s", bound=Bound(1), beside=beside)
    file = tmp_path / "machine.json"
    assert keep(file, a_run(full, missing), a_run(size=Size.QUICK)) == kept.read(file)
    assert [file] == list(tmp_path.iterdir())


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


@pytest.mark.parametrize(
    ("bound", "value", "holds"),
    [(MOST, 1.5, True), (MOST, 1.51, False), (LEAST, 0.8, True), (LEAST, 0.79, False)],
)
def test_a_bound_holds_up_to_its_limit(bound: Bound, value: float, *, holds: bool) -> None:
    """At most is at most, and at least is at least."""
    assert holds is Result(name="a", what="b", value=value, bound=bound).holds
