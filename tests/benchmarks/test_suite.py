"""The suite of benchmarks measures what its page says, whatever is missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.result import Bound, Result, Size

from benchmarks import __main__ as command
from benchmarks import suite

ROOT = Path(__file__).parents[2]
README = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?:`(\w+)`)? ?\| `([\w-]+)` \| .* \| (.*) \|$", re.MULTILINE)
MOST, LEAST = Bound(1.5), Bound(0.8, at_least=True)
# These start the tool, a browser and pytest many times, as tests of their own do.
# python -m benchmarks --least runs them.
LONG = ("reports", "gpu_tests", "verify_all", "ten_tickets", "path")
EXCEEDED = Result(name="slow", what="ours / theirs", value=2.0, bound=MOST)


def documented() -> dict[str, dict[str, str]]:
    """The bounds on the page: of each result, for each benchmark, which only its first row names."""
    found: dict[str, dict[str, str]] = {}
    for module, name, bound in ROW.findall(README):
        if module:
            found[module] = {}
        found[list(found)[-1]][name] = bound
    return found


def stand_in(**of: Result | str) -> Callable[[str, Size, Callable[[Result], None]], suite.Ran]:
    """A way to run benchmarks that measures nothing: each has the given result, or fails with these words."""

    def ran(name: str, _: Size, on_result: Callable[[Result], None]) -> suite.Ran:
        given = of[name]
        results, failure = ((), given) if isinstance(given, str) else ((given,), "")
        for result in results:
            on_result(result)
        return suite.Ran(name=name, seconds=1, load_before=0, load_after=0, results=results, failure=failure)

    return ran


@pytest.mark.slow
def test_every_benchmark_runs_and_has_the_bounds_of_the_page() -> None:
    """Each that is not long runs to its end, and has the results that the page names, and no other."""
    done = [suite.ran(name, Size.LEAST, lambda _: None) for name in suite.NAMES if name not in LONG]
    assert [""] * len(done) == [ran.failure for ran in done]
    pages = documented()
    bounds = {ran.name: {result.name: str(result.bound) for result in ran.results} for ran in done}
    assert bounds == {name: pages[name] for name in bounds}
    assert list(pages) == list(suite.NAMES)


def test_a_benchmark_that_fails_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next one runs, and the exit code tells."""
    good = Result(name="good", what="ours / theirs", value=1.0, bound=MOST)
    monkeypatch.setattr(suite, "ran", stand_in(startup="it broke", reading=good))
    assert 1 == command.main(["--only", "startup", "--only", "reading"])
    printed = capsys.readouterr().out
    assert "startup has failed: it broke\ngood  " in printed


@pytest.mark.parametrize(("size", "code"), [([], 1), (["--quick"], 0), (["--least"], 0)])
def test_a_bound_is_about_the_full_size(size: list[str], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that is exceeded ends the command with 1, unless less was measured than it is about."""
    monkeypatch.setattr(suite, "ran", stand_in(startup=EXCEEDED))
    assert code == command.main(["--only", "startup", *size])


@pytest.mark.parametrize(
    ("bound", "value", "holds"),
    [(MOST, 1.5, True), (MOST, 1.51, False), (LEAST, 0.8, True), (LEAST, 0.79, False)],
)
def test_a_bound_holds_up_to_its_limit(bound: Bound, value: float, *, holds: bool) -> None:
    """At most is at most, and at least is at least."""
    assert holds is Result(name="a", what="b", value=value, bound=bound).holds
