"""The pytest plugin, as somebody's test suite meets it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points

import pytest

import simcuda
from simcuda import real
from simcuda.real import Environment

pytest_plugins = ["pytester"]

NO_GPU = "no driver"
WAITING = """
import simcuda
import torch

def test_waits(gpu):
    with simcuda.assert_no_syncs():
        torch.ones(3, device="cuda").sum().item()
"""


@pytest.fixture(autouse=True)
def no_real_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine has, it is not seen unless a test says so."""
    monkeypatch.setattr(real, "why_not", lambda: NO_GPU)


@pytest.fixture
def two_real_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two real devices, which are simulated ones of another kind."""

    @contextmanager
    def real_device(count: int) -> Iterator[simcuda.Gpu]:
        with simcuda.device(count, profile="a100-cuda12") as gpu:
            yield gpu

    monkeypatch.setattr(real, "why_not", lambda: None)
    monkeypatch.setattr(real, "real_device", real_device)
    monkeypatch.setattr(real, "environment", lambda: Environment("NVIDIA A100", "12.8", "2"))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)


def lines(result: pytest.RunResult) -> str:
    """All that a run has printed."""
    return "\n".join(result.outlines)


def test_the_package_brings_the_plugin() -> None:
    """Installing the package is enough for pytest to find it."""
    found = {entry.name: entry.value for entry in entry_points(group="pytest11")}
    assert "pytest_simcuda" == found["pytest_simcuda"]


def test_a_run_without_the_fixture_imports_nothing(pytester: pytest.Pytester) -> None:
    """With the plugin but without its fixture neither torch nor simcuda is loaded."""
    pytester.makepyfile("""
        import sys

        def test_is_light(request):
            assert request.config.pluginmanager.has_plugin("pytest_simcuda")
            assert [] == [name for name in sys.modules if name.split(".")[0] in {"torch", "simcuda"}]
    """)
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_cuda_works_in_a_test_and_costs_are_counted(pytester: pytest.Pytester) -> None:
    """The fixture is one simulated device of the default kind where there is no real one."""
    pytester.makepyfile("""
        import torch

        def test_reads_once(gpu):
            assert "h200-cuda13" == gpu.profile.name
            assert 1 == torch.cuda.device_count()
            with gpu.measure() as cost:
                torch.ones(3, device="cuda").sum().item()
            assert 1 == cost.syncs

        def test_cuda_ends_with_the_test():
            assert not torch.cuda.is_available()
    """)
    pytester.runpytest().assert_outcomes(passed=2)


def test_a_failure_names_the_line_and_the_device(pytester: pytest.Pytester) -> None:
    """The message has file, line, function and source, and says on what was counted."""
    pytester.makepyfile(test_it=WAITING)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *AssertionError: syncs: 1, at most 0 allowed",
            'E *   test_it.py:6 in test_waits: 1 stream_syncs  torch.ones(3, device="cuda").sum().item()',
            "counted on h200-cuda13, simulated",
        ]
    )
    assert "assertions.py" not in lines(result)


def test_the_marker_says_how_many_devices_and_of_what_kind(pytester: pytest.Pytester) -> None:
    """Number, capacity and profile are the marker's, before those of the command line."""
    pytester.makepyfile("""
        import pytest
        import torch

        @pytest.mark.simcuda(devices=2, capacity=4 << 20, profile="h200-cuda12")
        def test_small_ones(gpu):
            assert "h200-cuda12" == gpu.profile.name
            assert 2 == torch.cuda.device_count()
            with pytest.raises(torch.OutOfMemoryError):
                torch.empty(5 << 20, dtype=torch.uint8, device="cuda:1")

        def test_another(gpu):
            assert "a100-cuda12" == gpu.profile.name
    """)
    pytester.runpytest("--strict-markers", "--simcuda-profile=a100-cuda12").assert_outcomes(passed=2)


def test_an_unknown_profile_ends_the_run_as_wrong_usage(pytester: pytest.Pytester) -> None:
    """One line says which profiles there are, instead of one error for every test."""
    pytester.makepyfile(WAITING)
    result = pytester.runpytest("--simcuda-profile=h300")
    assert pytest.ExitCode.USAGE_ERROR == result.ret
    assert "--simcuda-profile: there is no profile 'h300'; there are h200-cuda13, " in result.stderr.str()


REAL = """
import torch

def test_real(gpu):
    assert "a100-cuda12" == gpu.profile.name
"""


@pytest.mark.usefixtures("two_real_gpus")
def test_a_real_device_is_taken_where_there_is_one(pytester: pytest.Pytester) -> None:
    """Without options the real device counts; with ``never`` it does not."""
    pytester.makepyfile(REAL)
    pytester.runpytest().assert_outcomes(passed=1)
    pytester.runpytest("--simcuda-real=always").assert_outcomes(passed=1)
    result = pytester.runpytest("--simcuda-real=never")
    result.assert_outcomes(failed=1)
    assert "counted on h200-cuda13, simulated" in lines(result)


@pytest.mark.usefixtures("two_real_gpus")
@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ("devices=3", "the test needs 3 devices, and there are 2"),
        ("capacity=1 << 20", "the test asks for a capacity, which only simulated devices have"),
        ("profile='h200-cuda13'", "the test asks for a profile, which only simulated devices have"),
    ],
)
def test_what_real_devices_do_not_have_is_simulated(pytester: pytest.Pytester, wish: str, why: str) -> None:
    """Such a test is simulated, and skipped with the reason where only real devices are to count."""
    pytester.makepyfile(f"""
        import pytest

        @pytest.mark.simcuda({wish})
        def test_simulated(gpu):
            assert "h200-cuda13" == gpu.profile.name
    """)
    pytester.runpytest().assert_outcomes(passed=1)
    result = pytester.runpytest("--simcuda-real=always", "-rs")
    result.assert_outcomes(skipped=1)
    assert why in lines(result)


def test_a_suite_with_its_own_gpu_keeps_it(pytester: pytest.Pytester) -> None:
    """A fixture of that name in a conftest comes before the plugin's."""
    pytester.makeconftest("""
        import pytest

        @pytest.fixture
        def gpu():
            return "mine"
    """)
    pytester.makepyfile("def test_mine(gpu): assert 'mine' == gpu")
    pytester.runpytest().assert_outcomes(passed=1)
