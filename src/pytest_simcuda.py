"""The pytest plugin of simcuda: CUDA devices that count, real ones where there are any, else simulated ones.

The fixture ``gpu`` is for one test; with ``--simcuda`` a whole session has simulated devices.
pytest imports this module in every run, so it stays apart from simcuda, which imports torch.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from simcuda import Gpu
    from simcuda.session import Session, Summary

MARKER = "simcuda(devices=1, capacity=None, profile=None)"
SIMULATED_ONLY = ("capacity", "profile")
MOST_DEVICES = 64


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("simcuda", "simulated CUDA devices")
    group.addoption(
        "--simcuda",
        nargs="?",
        const="1",
        metavar="=DEVICES",
        help="simulate CUDA devices for the whole session, by default one",
    )
    group.addoption(
        "--simcuda-report",
        metavar="FILE",
        help="write what a session with --simcuda found as JSON",
    )
    group.addoption(
        "--simcuda-real",
        choices=("auto", "never", "always"),
        default="auto",
        help="measure a real GPU if there is one (auto, the default), never or always",
    )
    group.addoption(
        "--simcuda-profile",
        metavar="NAME",
        help="the profile of simulated devices, by default h200-cuda13",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Simulate devices before any conftest.py looks for them."""
    options = early_config.known_args_namespace
    if options.simcuda is None:
        return
    # argparse would take the folder in "--simcuda tests/" for the number of devices.
    end = args.index("--") if "--" in args else len(args)
    args[:end] = ["--simcuda=1" if each == "--simcuda" else each for each in args[:end]]
    again = parser.parse_known_args(args, copy.copy(early_config.option))
    options.simcuda, options.file_or_dir = again.simcuda, again.file_or_dir
    _simulate_session(early_config, options)


def _simulate_session(config: pytest.Config, options: Any) -> None:
    """Open the devices that the options ask for, until the session ends."""
    if not (options.simcuda.isdecimal() and 1 <= int(options.simcuda) <= MOST_DEVICES):
        raise pytest.UsageError(
            f"--simcuda={options.simcuda}: a number of devices from 1 to {MOST_DEVICES}"
        )
    if options.simcuda_real == "always":
        raise pytest.UsageError(
            "--simcuda simulates devices, --simcuda-real=always measures real ones"
        )
    report = options.simcuda_report and Path(options.simcuda_report).absolute()
    if report and (report.is_dir() or not report.parent.is_dir()):
        raise pytest.UsageError(f"--simcuda-report: {report} is a folder, or in none")
    try:
        from simcuda import session, simulation
    except ModuleNotFoundError as error:
        raise pytest.UsageError(f"--simcuda needs PyTorch: {error}") from None
    stack = ExitStack()
    config.add_cleanup(stack.close)
    active = simulation.active()
    if active is None:
        if reason := simulation.why_not_with_this_torch():
            raise pytest.UsageError(f"--simcuda: {reason}")
        simulated = simulation.session(int(options.simcuda), _profile(options))
        active = stack.enter_context(simulated)
    summary = session.Summary(repr(active).strip("<>"), config.rootpath)
    measured = stack.enter_context(session.measuring_tests(active, config.rootpath))
    config.pluginmanager.register(
        SimulatedSession(measured, summary, report), "simcuda_session"
    )


class SimulatedSession:
    """The hooks of a session with ``--simcuda``; in a process of pytest-xdist, of its part of the tests."""

    def __init__(self, session: Session, summary: Summary, report: Path | None) -> None:
        self.session, self.summary, self._report = session, summary, report
        # The HeldSession of a budget, which adds up the waits of all tests.
        self.beside: Any = None

    def pytest_report_header(self) -> str:
        """Say on what the tests run."""
        return f"simcuda: {self.summary.devices}"

    @pytest.hookimpl(tryfirst=True, wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Measure a test from its beginning."""
        self.session.begin()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give the report of a phase what was measured; plain data, which pytest-xdist can send."""
        report = yield
        self._record(report, call, self.session.take())
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Give the report of a file why it was refused, if it was."""
        report = yield
        told = self.session.take() if self.session.tells_sites else {}
        record = {"sites": told["sites"]} if "sites" in told else {}
        self._record(report, getattr(report, "call", None), record)
        return report

    def _record(
        self, report: Any, call: pytest.CallInfo[Any] | None, record: dict[str, Any]
    ) -> None:
        from simcuda.session import refusal

        if call and call.excinfo and report.outcome != "passed":
            record["refused"] = refusal(call.excinfo.value)
        report.simcuda = record

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test, of this process or another."""
        is_expected = report.skipped and hasattr(report, "wasxfail")
        self._add(
            report, report.when or "", "xfailed" if is_expected else report.outcome
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Add a file that could not be collected."""
        self._add(report, "collect", report.outcome)

    def _add(
        self, report: pytest.TestReport | pytest.CollectReport, phase: str, outcome: str
    ) -> None:
        # A process that crashed has no record.
        record = getattr(report, "simcuda", {})
        self.summary.add(report.nodeid, phase, outcome, record)
        if self.beside:
            self.beside.add(report.nodeid, record)

    def pytest_terminal_summary(
        self, terminalreporter: Any, config: pytest.Config
    ) -> None:
        """Print the table; with ``-v``, all of it."""
        if config.option.collectonly:
            return
        terminalreporter.section(f"simcuda: {self.summary.devices}")
        most = {} if config.get_verbosity() <= 0 else {"most": None}
        for line in self.summary.lines(**most):
            terminalreporter.line(line)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report, once for all processes."""
        if self._report and not hasattr(session.config, "workerinput"):
            self._report.write_text(
                json.dumps(self.summary.as_dict(), indent=2) + "\n", encoding="utf-8"
            )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    # Loaded by a conftest.py, the plugin comes too late for that of the session.
    if config.option.simcuda is not None and not config.pluginmanager.has_plugin(
        "simcuda_session"
    ):
        _simulate_session(config, config.option)
    if config.option.simcuda_profile:
        _profile(config.option)
    if config.option.simcuda_report and config.option.simcuda is None:
        raise pytest.UsageError(
            "--simcuda-report is the report of a session with --simcuda"
        )
    meaning = (
        "how many devices the fixture gpu has; "
        "a capacity in bytes or a profile makes them simulated ones"
    )
    config.addinivalue_line("markers", f"{MARKER}: {meaning}")


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Iterator[Gpu]:
    """CUDA devices whose costs are counted: real ones where there are any, else simulated ones."""
    name, chosen = devices_for(request.node, request.config)
    with chosen as devices:
        request.node.add_report_section("setup", "simcuda", f"counted on {name}")
        yield devices


def _wanted(marker: pytest.Mark | None) -> Mapping[str, Any]:
    """What the marker asks for."""
    if marker is None:
        return {}
    if marker.args or not set(marker.kwargs) <= {"devices", *SIMULATED_ONLY}:
        refuse(marker, f"it takes {MARKER}")
    return marker.kwargs


def refuse(mark: pytest.Mark, why: str) -> NoReturn:
    """Fail the test whose marker cannot be understood."""
    given = [
        *map(repr, mark.args),
        *(f"{name}={value!r}" for name, value in mark.kwargs.items()),
    ]
    said = f"@pytest.mark.{mark.name}({', '.join(given)}): {why}"
    raise pytest.fail.Exception(said, pytrace=False) from None


def devices_for(
    item: Any, config: pytest.Config
) -> tuple[str, AbstractContextManager[Gpu]]:
    """What the devices of a test are, in words, and the devices."""
    from simcuda import simulation

    wanted = _wanted(item.get_closest_marker("simcuda"))
    # A simulation that pytest runs within, as when a test is probed, counts this test too.
    if active := simulation.active():
        asked = (
            wanted.get("devices", 1),
            wanted.get("profile"),
            wanted.get("capacity"),
        )
        if unfit := simulation.why_not_in_session(*asked):
            pytest.skip(unfit)
        return f"{active.profile.name}, simulated around this test", nullcontext(active)
    mode, count = config.getoption("simcuda_real"), wanted.get("devices", 1)
    profile = wanted.get("profile") or _profile(config.option)
    if mode != "never":
        from simcuda import real

        missing = real.why_not()
        if missing and mode == "always":
            pytest.fail(f"--simcuda-real=always: {missing}", pytrace=False)
        unfit = missing or _why_not_here(wanted, count)
        if not unfit:
            return real.environment().gpu, real.real_device(count)
        if mode == "always":
            pytest.skip(f"--simcuda-real=always: {unfit}")
    import simcuda

    return f"{profile}, simulated", simcuda.device(
        count, profile=profile, capacity=wanted.get("capacity")
    )


def _why_not_here(wanted: Mapping[str, Any], count: int) -> str | None:
    """Why a test cannot run on the real devices of this machine."""
    import torch

    if asked := [name for name in SIMULATED_ONLY if name in wanted]:
        return f"the test asks for a {asked[0]}, which only simulated devices have"
    there = torch.cuda.device_count()
    return (
        f"the test needs {count} devices, and there are {there}"
        if there < count
        else None
    )


def _profile(options: Any) -> str:
    """The profile that the options ask for."""
    from simcuda.profile import DEFAULT_PROFILE, PROFILES

    profile: str = options.simcuda_profile or DEFAULT_PROFILE
    if profile not in PROFILES:
        known = ", ".join(PROFILES)
        raise pytest.UsageError(
            f"--simcuda-profile: there is no profile {profile!r}; there are {known}"
        )
    return profile
