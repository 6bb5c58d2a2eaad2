"""The marker ``gpu_budget``, as somebody's test suite meets it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import simcuda
from simcuda import real
from simcuda.real import Environment

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[1] / "docs" / "budgets.md"

HEAD = """
import pytest, simcuda, torch

@pytest.fixture
def x():
    return torch.ones(8, device="cuda")

def read(x, times):
    for _ in range(times):
        x.sum().item()
"""


@pytest.fixture(autouse=True)
def no_real_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine has, it is not seen unless a test says so."""
    monkeypatch.setattr(real, "why_not", lambda: "no driver")


def run(pytester: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    """Run these tests."""
    pytester.makepyfile(HEAD + tests)
    return pytester.runpytest(*options)


LAWS = """
@pytest.mark.parametrize("b", [2, 3])
@pytest.mark.parametrize("waits", [1, 7])
@pytest.mark.gpu_budget(syncs="2*b", d2h_bytes="4*(b + k)", k=4)
def test_reads(x, b, waits):
    read(x, waits)
"""


@pytest.mark.parametrize("option", [[], ["--simcuda"]], ids=["own devices", "of the session"])
def test_limits_are_laws_in_the_arguments_of_a_test(pytester: pytest.Pytester, option: list[str]) -> None:
    """A failure names the limit with its law, what was measured, and the line."""
    result = run(pytester, LAWS, *option)
    # 7 waits are more than 2*2 and 2*3; 28 bytes are more than 4*(2+4), and as much as 4*(3+4).
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines_random(
        [
            "@pytest.mark.gpu_budget: syncs: 7, at most 2[*]b = 4 allowed",
            "  test_*.py:9 in read: 7 stream_syncs  x.sum().item()",
            "d2h_bytes: 28, at most 4[*](b + k) = 24 allowed",
            "@pytest.mark.gpu_budget: syncs: 7, at most 2[*]b = 6 allowed",
        ]
    )
    assert "= 28 allowed" not in result.stdout.str()


FIXTURES = """
@pytest.fixture(params=[3])
def batch(request):
    return torch.ones(request.param, device="cuda")

@pytest.fixture
def size():
    return 2

@pytest.mark.gpu_budget(syncs="batch - size", peak_bytes="0*batch")
def test_of_fixtures(batch, size):
    batch.tolist()

@pytest.mark.gpu_budget(syncs=0)
def test_of_the_call_alone(gpu, x):
    with simcuda.allowed("logged"):
        read(x, 2)
    assert gpu.live_bytes() == 32
"""


def test_variables_are_values_of_fixtures_too(pytester: pytest.Pytester) -> None:
    """A parameter of a fixture by the fixture's name; what fixtures do, and regions, count to no limit."""
    run(pytester, FIXTURES).assert_outcomes(passed=2)


OUTER = """
pytestmark = pytest.mark.gpu_budget(syncs=0, d2h=0)

class TestStep:
    pytestmark = pytest.mark.gpu_budget(syncs=1)

    def test_class(self, x):
        torch.cuda.synchronize()

    @pytest.mark.gpu_budget(d2h=1, syncs=2)
    def test_method(self, x):
        read(x, 2)

def test_module(x):
    x + 1
"""


def test_the_closest_marker_limits_a_metric(pytester: pytest.Pytester) -> None:
    """The method's marker allows two waits and one copy; the module's copies hold for the class."""
    result = run(pytester, OUTER)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["@pytest.mark.gpu_budget: d2h: 2, at most 1 allowed"])
    assert "syncs:" not in result.stdout.str()


OUTCOMES = """
pytestmark = pytest.mark.gpu_budget(syncs=0)

def test_skips(x):
    read(x, 1)
    pytest.skip("not today")

def test_fails(x):
    read(x, 1)
    assert x is None, "its own failure"

@pytest.mark.xfail(strict=True)
def test_expected(x):
    read(x, 1)

@pytest.mark.skipif(True, reason="never")
def test_never():
    read(None, 1)
"""


def test_a_test_keeps_its_own_outcome(pytester: pytest.Pytester) -> None:
    """One that skips or fails by itself; one that is expected to fail may fail by its budget."""
    result = run(pytester, OUTCOMES)
    result.assert_outcomes(skipped=2, failed=1, xfailed=1)
    result.stdout.fnmatch_lines(["E*AssertionError: its own failure"])
    assert "gpu_budget:" not in result.stdout.str()


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("sync=0", "there is no metric 'sync'; there are syncs, *"),
        ("0", "it takes limits by name*"),
        ("", "it takes limits by name*"),
        ("b=1", "there is no metric 'b'*"),
        ("syncs='b +'", "syncs: unexpected end at column 4 of 'b +'*"),
        ("syncs='b', size=1", "syncs: unknown variable 'b' at column 1 (*known: size)"),
        ("syncs='8/size', size=0", "syncs: division by zero*"),
        ("syncs=-1", "syncs: -1 is no limit; use a number from 0 on"),
        ("syncs=True", "syncs: True is neither a number nor a law"),
        ("syncs=0.5", "syncs: 0.5 is neither a number nor a law"),
    ],
)
def test_a_mistake_fails_the_test(pytester: pytest.Pytester, marker: str, said: str) -> None:
    """Before it runs, with the marker as it is written."""
    tests = f"@pytest.mark.gpu_budget({marker})\ndef test_wrong(x):\n    raise SystemExit\n"
    result = run(pytester, tests)
    result.assert_outcomes(failed=1)
    given = marker.replace("[", "[[]")
    result.stdout.fnmatch_lines([f"@pytest.mark.gpu_budget({given}): {said}"])
    assert "During handling" not in result.stdout.str()


@pytest.mark.parametrize("fixture", ["", "gpu"], ids=["without the fixture", "with it"])
def test_a_real_gpu_is_measured(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, fixture: str
) -> None:
    """As the fixture chooses it; what it cannot count fails."""
    opened: list[int] = []

    @contextmanager
    def real_device(count: int = 1) -> Iterator[simcuda.Gpu]:
        opened.append(count)
        with simcuda.device(count, profile="a100-cuda12") as gpu:
            yield gpu

    monkeypatch.setattr(real, "why_not", lambda: None)
    monkeypatch.setattr(real, "real_device", real_device)
    monkeypatch.setattr(real, "environment", lambda: Environment("NVIDIA A100", "12.8", "2"))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    tests = (
        f"@pytest.mark.gpu_budget(syncs=1)\ndef test_waits({fixture}):\n    read(torch.ones(8).cuda(), 2)\n"
    )
    result = run(pytester, tests, "-p", "no:simcuda_session")
    result.assert_outcomes(failed=1)
    # Two reads and the copy to the device.
    result.stdout.fnmatch_lines(
        ["@pytest.mark.gpu_budget: syncs: 3, at most 1 allowed", "counted on NVIDIA A100"]
    )
    assert [1] == opened


def test_the_page_shows_a_test_that_holds(pytester: pytest.Pytester) -> None:
    """And is tight: at the peak there are the differences, the deviations and the quotients."""
    *_, example = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    pytester.makepyfile(example)
    pytester.runpytest().assert_outcomes(passed=2)
    pytester.makepyfile(example.replace("4*(2*batch + 1)*width", "4*(2*batch + 1)*width - 1"))
    pytester.runpytest().assert_outcomes(failed=2)
