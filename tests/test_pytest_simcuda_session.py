"""A whole session of pytest on simulated devices, as somebody's test suite meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from simcuda import simulation

pytest_plugins = ["pytester"]

SUITE = """
import pytest
import torch

@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_reads():
    for _ in range(4):
        torch.ones(3, device="cuda").sum().item()

@pytest.mark.parametrize("device", range(torch.cuda.device_count()))
def test_each(device):
    assert f"cuda:{device}" == str(torch.ones(2).to(device).device)

def test_ordinary():
    assert 3 == torch.ones(3).sum().item()
"""
TEAM = """
import sys
import torch
sys.path.insert(0, "checks")
import team

def test_team():
    team.read(torch.ones((), device="cuda"))
"""
EACH = 'assert f"cuda:{device}" == str(torch.ones(2).to(device).device)'
CONFTEST = """
import torch

SEEN = torch.cuda.device_count()

def pytest_addoption(parser):
    parser.addoption("--mine")

def pytest_report_header(config):
    return f"mine: {config.option.mine}, seen: {SEEN}"
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Path:
    """A folder with tests, and a conftest that only counts if the folder is among the arguments."""
    folder = pytester.mkdir("checks")
    (folder / "test_gpu.py").write_text(SUITE, encoding="utf-8")
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    return folder


def table(result: pytest.RunResult) -> list[str]:
    """The lines of the table, without its heading and what follows."""
    start = next(i for i, line in enumerate(result.outlines) if line.startswith("=") and " simcuda: " in line)
    rest = result.outlines[start + 1 :]
    end = next(i for i, line in enumerate(rest) if line.startswith("="))
    return "\n".join(rest[:end]).strip().splitlines()


@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize(
    ("option", "devices"), [("--simcuda", 1), ("--simcuda=1", 1), ("--simcuda=4", 4)], ids=str
)
def test_the_devices_are_there_before_the_suite(pytester: pytest.Pytester, option: str, devices: int) -> None:
    """conftest, skips and parametrisations see them; a folder after the option stays a folder."""
    result = pytester.runpytest(option, "checks", "--mine=x")
    # The reading test, the ordinary one, and one for each device.
    result.assert_outcomes(passed=2 + devices)
    result.stdout.fnmatch_lines([f"simcuda: {devices} x h200-cuda13, simulated", f"mine: x, seen: {devices}"])
    assert simulation.active() is None
    assert not torch.cuda.is_available()


@pytest.mark.usefixtures("suite")
def test_without_the_option_nothing_is_simulated(pytester: pytest.Pytester) -> None:
    """The same suite skips what needs a GPU, and has no table."""
    result = pytester.runpytest("checks")
    result.assert_outcomes(passed=1, skipped=2)
    assert "simcuda" not in "\n".join(result.outlines)


@pytest.mark.usefixtures("suite")
def test_the_table_counts_what_the_tests_did(pytester: pytest.Pytester) -> None:
    """Tests that used a device, and the lines that waited, most often first."""
    pytester.makeini("[pytest]\naddopts = --simcuda=2")
    result = pytester.runpytest("checks")
    assert [
        ["3 tests used a device: 3 passed"],
        [""],
        ["waits", "drains", "where", "source"],
        # Four reads, and a copy from pageable memory to each of the two devices.
        ["4", "4", "checks/test_gpu.py:8 in test_reads", 'torch.ones(3, device="cuda").sum().item()'],
        ["2", "2", "checks/test_gpu.py:12 in test_each", EACH],
    ] == [re.split(r"\s{2,}", line.strip()) for line in table(result)]


@pytest.mark.slow
def test_processes_of_xdist_have_devices_and_one_report(pytester: pytest.Pytester, suite: Path) -> None:
    """What both processes found is merged; a test that takes its process with it is no reason to stop.

    So are the lines that the budget does not allow.
    """
    (suite / "test_crash.py").write_text(
        "import os, torch\n\ndef test_crash():\n    torch.ones(1, device='cuda')\n    os._exit(1)\n",
        encoding="utf-8",
    )
    (suite / "team.py").write_text("def read(x):\n    return x.item()\n")
    (suite / "test_team.py").write_text(TEAM)
    (pytester.path / "tickets.toml").write_text('[[budget]]\nrun = "checks/test_team.py"\n')
    options = ("--budget=tickets.toml", "--simcuda-report=found.json")
    result = pytester.runpytest_subprocess("--simcuda=2", "-n2", "checks", *options)
    result.assert_outcomes(passed=5, failed=1)
    found: dict[str, Any] = json.loads((pytester.path / "found.json").read_text("utf-8"))
    assert (1, "simcuda-session") == (found["schema_version"], found["kind"])
    data = found["data"]
    assert "2 x h200-cuda13, simulated" == data["devices"]
    used = ["test_reads", "test_each[0]", "test_each[1]", "test_team"]
    assert dict.fromkeys(used, "passed") == {
        each["test"].partition("::")[2]: each["outcome"] for each in data["used"]
    }
    # Four reads, two copies from pageable memory, and one read.
    assert [("test_reads", 8, 4, 4), ("test_each", 12, 2, 2), ("read", 2, 1, 1)] == [
        (each["function"], each["line"], each["waits"], each["drains"]) for each in data["waits"]
    ]
    assert ["checks/team.py"] == [each["file"] for each in data["budget"]["refused"]]
    assert "4 tests used a device: 4 passed" in table(result)


REFUSED = """
import os
import pytest
import simcuda
import torch

def test_captures():
    torch.cuda.CUDAGraph()

def test_handles_it():
    with pytest.raises(RuntimeError):
        torch.cuda.CUDAGraph()

@pytest.mark.simcuda(capacity=1 << 20)
def test_small(gpu):
    pass

def test_many():
    with simcuda.device(3):
        pass

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return torch.ones(1, device="cuda")

def test_loads():
    list(torch.utils.data.DataLoader(Data(), num_workers=1))
"""


def test_what_is_refused_is_named_with_its_reason(pytester: pytest.Pytester) -> None:
    """Tests, files and worker processes; not a test that expects the refusal."""
    pytester.makepyfile(test_refused=REFUSED, test_broken="import torch\ntorch.cuda.CUDAGraph()")
    result = pytester.runpytest("--simcuda=2", "--continue-on-collection-errors")
    result.assert_outcomes(passed=1, failed=3, skipped=1, errors=1)
    reasons = dict(line.split(": ", 1) for line in table(result) if line.startswith("test_"))
    session = "pytest --simcuda simulates 2 x h200-cuda13: "
    assert {
        "test_broken.py": "torch.cuda.CUDAGraph does not run on a simulated CUDA device; ",
        "test_refused.py::test_captures": "torch.cuda.CUDAGraph does not run on a simulated CUDA device; ",
        "test_refused.py::test_small": session + "another capacity or profile is needed",
        "test_refused.py::test_many": session + "3 devices are needed, as by --simcuda=3",
        "test_refused.py::test_loads": "Cannot re-initialize CUDA in forked subprocess. ",
    }.keys() == reasons.keys()
    assert reasons["test_refused.py::test_many"] == session + "3 devices are needed, as by --simcuda=3"
    assert reasons["test_refused.py::test_small"].startswith(session + "another capacity or profile")
    assert reasons["test_broken.py"].startswith("torch.cuda.CUDAGraph does not run on a simulated ")
    assert reasons["test_refused.py::test_loads"].startswith("Cannot re-initialize CUDA in forked subprocess")


SPAWNING = """
import multiprocessing
import torch

def read():
    for _ in range(3):
        torch.ones(2, device="cuda").sum().item()

def test_spawns():
    process = multiprocessing.get_context("spawn").Process(target=read)
    process.start()
    process.join()
    assert 0 == process.exitcode
"""


@pytest.mark.slow
def test_what_a_spawned_process_does_is_said_to_be_not_counted(pytester: pytest.Pytester) -> None:
    """Once, with the test: none of its three reads is in the table."""
    pytester.makepyfile(test_spawning=SPAWNING)
    result = pytester.runpytest("--simcuda", "--simcuda-report=report.json")
    result.assert_outcomes(passed=1)
    said = "not counted: processes that use a device, spawned by tests: 1"
    assert [said, "test_spawning.py::test_spawns"] == [line for line in table(result) if "spawn" in line]
    data = json.loads((pytester.path / "report.json").read_text())["data"]
    assert (["test_spawning.py::test_spawns"], []) == (data["spawning"], data["waits"])


@pytest.mark.slow
def test_the_tests_own_devices_are_those_of_the_session(pytester: pytest.Pytester) -> None:
    """The fixture, a block of its own and the assertions count on the session's devices."""
    pytester.makepyfile("""
        import pytest
        import simcuda
        import torch

        def read():
            torch.ones((), device="cuda").item()

        def test_fixture(gpu):
            with gpu.measure() as cost:
                read()
            assert 1 == cost.syncs

        def test_block():
            with simcuda.device() as gpu, gpu.measure() as cost:
                read()
            assert 1 == cost.syncs
            read()

        def test_a_failure_prints_tensors():
            try:
                assert torch.ones(2, device="cuda") is None
            except AssertionError:
                pass

        def test_assertion():
            with pytest.raises(AssertionError, match="syncs: 1, at most 0 allowed"):
                with simcuda.assert_no_syncs():
                    read()
    """)
    result = pytester.runpytest("--simcuda")
    result.assert_outcomes(passed=4)
    # What pytest reads to print it is not counted: all four reads are those of one line.
    assert ["4", "4"] == table(result)[3].split()[:2]
    assert 4 == len(table(result))


@pytest.mark.slow
def test_only_tests_that_use_a_device_are_watched(pytester: pytest.Pytester) -> None:
    """A test begins at torch's own speed unless something is left on a device; each has its own counts."""
    pytester.makepyfile("""
        import pytest
        import torch
        from simcuda import simulation
        from simcuda.device import dispatch_key

        kept = []

        def is_watched():
            return torch._C._dispatch_tls_is_dispatch_key_included(dispatch_key._KEY)

        @pytest.fixture(autouse=True)
        def one_measurement_with_nothing_in_it():
            (cost,) = simulation.active()._machine.ledger._open
            assert () == cost.sites

        def test_ordinary():
            torch.ones(3).sum().item()
            assert not is_watched()

        def test_uses_a_device():
            x = torch.ones(3, device="cuda")
            x.cycle = [x]
            assert is_watched()

        def test_nothing_is_left():
            assert not is_watched()

        def test_leaves_something():
            kept.append(torch.ones(3).cuda())

        def test_something_is_left():
            assert is_watched()
            kept.clear()

        def test_it_is_gone():
            assert not is_watched()

        @pytest.mark.xfail
        def test_fails():
            x = torch.ones(3, device="cuda")
            assert not is_watched()

        def test_pytest_keeps_the_error_until_here():
            pass

        def test_the_error_is_gone():
            assert not is_watched()
    """)
    # In a process of its own: pytester would keep the error too.
    result = pytester.runpytest_subprocess("--simcuda")
    result.assert_outcomes(passed=8, xfailed=1)
    assert "3 tests used a device: 2 passed, 1 xfailed" in table(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--simcuda=0"], "--simcuda=0: a number of devices from 1 to 64"),
        (["--simcuda=x"], "--simcuda=x: a number of devices from 1 to 64"),
        (["--simcuda=-1"], "--simcuda=-1: a number of devices from 1 to 64"),
        (["--simcuda", "--simcuda-profile=h300"], "--simcuda-profile: there is no profile 'h300'"),
        (["--simcuda", "--simcuda-real=always"], "--simcuda-real=always measures real ones"),
        (["--simcuda", "--simcuda-report=no/where.json"], "/no/where.json is a folder, or in none"),
        (["--simcuda-report=found.json"], "--simcuda-report is the report of a session with --simcuda"),
        (["--simcuda", "-p", "no:simcuda"], "unrecognized arguments: --simcuda"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_options_that_cannot_be_are_wrong_usage(
    pytester: pytest.Pytester, arguments: list[str], message: str
) -> None:
    """One line says what is wrong, and nothing stays simulated."""
    if "no:simcuda" in arguments:
        result = pytester.runpytest_subprocess(*arguments)
    else:
        result = pytester.runpytest(*arguments)
    assert pytest.ExitCode.USAGE_ERROR == result.ret
    assert message in "\n".join(result.errlines + result.outlines)
    assert simulation.active() is None


@pytest.mark.slow
def test_without_torch_only_the_option_fails(pytester: pytest.Pytester) -> None:
    """finding-tickets can be installed without torch: other suites then run as ever."""
    pytester.makepyfile(
        torch="raise ModuleNotFoundError(\"No module named 'torch'\")", test_it="def test(): pass"
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
    result = pytester.runpytest_subprocess("--simcuda")
    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines(["ERROR: --simcuda needs PyTorch: No module named 'torch'"])
