"""The pytest plugin of budgets: the most that a test may cost, and where a suite may wait.

pytest imports this module in every run, so everything else is imported once it is asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_simcuda import devices_for, refuse

if TYPE_CHECKING:
    from finding_tickets.ground.statements import Statement
    from finding_tickets.register.budgets import Allowance
    from simcuda import Gpu
    from simcuda.session import Summary

_OF_TESTS = re.compile(
    r"(?:.*/)?(?:tests?/.*|test_[^/]*\.py|[^/]*_test\.py|conftest\.py)"
)
MARKER = 'gpu_budget(syncs=0, peak_bytes="6*batch*seq")'
_DEVICE, _SESSION = "_gpu_of_budget", "budget_session"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("simcuda").addoption(
        "--budget",
        metavar="FILE",
        help="with --simcuda: fail if a line waits that the budgets of this configuration do not allow",
    )


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Follow what is imported from the first conftest.py on."""
    _hold_session(early_config, early_config.known_args_namespace)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    meaning = (
        "the most that the test may cost, by metric: numbers, "
        "or laws in its arguments that are integers"
    )
    config.addinivalue_line("markers", f"{MARKER}: {meaning}")
    # Loaded by a conftest.py, the plugin comes too late for that of the session.
    if not config.pluginmanager.has_plugin(_SESSION):
        _hold_session(config, config.option)


def _hold_session(config: pytest.Config, options: Any) -> None:
    """Hold the session to the allowances of the file that the options name."""
    if not options.budget:
        return
    simulated = config.pluginmanager.get_plugin("simcuda_session")
    if simulated is None:
        if options.simcuda is None:
            raise pytest.UsageError("--budget is for a session with --simcuda")
        return
    from finding_tickets.errors import TicketsError
    from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE, config_from

    file = (config.invocation_params.dir / options.budget).resolve()
    try:
        if file.name not in {CONFIG_FILE, PROJECT_FILE}:
            raise pytest.UsageError(
                f"--budget {file}: is neither {CONFIG_FILE} nor {PROJECT_FILE}"
            )
        budgets = config_from(file.parent, {file.name: file.read_bytes()}).budgets
    except (TicketsError, OSError) as error:
        raise pytest.UsageError(f"--budget: {error}") from None
    if not budgets:
        raise pytest.UsageError(f"--budget {file}: has no budget")
    allowances = [allowance for budget in budgets for allowance in budget.allow]
    stack = ExitStack()
    config.add_cleanup(stack.close)
    stack.enter_context(simulated.session.attribute_to(file.parent))
    simulated.summary.root = file.parent
    simulated.beside = HeldSession(file, allowances, simulated.summary)
    config.pluginmanager.register(simulated.beside, _SESSION)


class HeldSession:
    """The hooks of a session with ``--budget``; in a process of pytest-xdist, of its part of the tests."""

    def __init__(
        self, file: Path, allowances: Sequence[Allowance], summary: Summary
    ) -> None:
        self._file, self._allowances, self._summary = file, allowances, summary
        self._waits: Counter[tuple[str, int, str]] = Counter()
        self._tests: dict[tuple[str, int, str], str] = {}
        self._refused: list[dict[str, Any]] = []

    def add(self, test: str, record: Mapping[str, Any]) -> None:
        """Add the waits of one phase of a test, but for those in regions and in tests."""
        for file, line, function, what, reason, count in record.get("sites", ()):
            if (
                line
                and not reason
                and what.endswith("syncs")
                and not _OF_TESTS.fullmatch(file)
            ):
                self._waits[file, line, function] += count
                self._tests.setdefault((file, line, function), test)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Judge all processes at once; a session whose tests pass fails here."""
        if hasattr(session.config, "workerinput") or session.config.option.collectonly:
            return
        from finding_tickets.budget.rules import match_allowances
        from finding_tickets.ground.statements import find_statement

        root = self._file.parent
        waits: Counter[Statement] = Counter()
        tests: dict[Statement, str] = {}
        for (file, line, function), count in self._waits.items():
            if count > 0:
                statement = find_statement(root, file, line, function)
                waits[statement] += count
                tests[statement] = self._tests[file, line, function]
        allowed = match_allowances(self._allowances, sorted(waits), root)
        for statement, count in waits.most_common():
            if statement not in allowed:
                place = {
                    "file": statement.file,
                    "line": statement.line,
                    "code": statement.code,
                }
                self._refused.append(
                    {**place, "waits": count, "test": tests[statement]}
                )
        self._summary.beside["budget"] = {
            "file": str(self._file),
            "refused": self._refused,
        }
        if self._refused and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: Any, config: pytest.Config
    ) -> None:
        """Print the lines that wait and may not."""
        if config.option.collectonly:
            return
        terminalreporter.section(f"budget: {config.option.budget}")
        for each in self._refused:
            where = f"{each['file']}:{each['line']}: waits {each['waits']}x, not allowed: {each['code']}"
            terminalreporter.line(f"{where} (in {each['test']})")
        terminalreporter.line(
            f"{len(self._refused)} statements wait that {self._file.name} does not allow"
        )


@pytest.hookimpl(trylast=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Open devices for a test with the marker before its fixtures are made."""
    names = getattr(item, "fixturenames", None)
    if (
        names is not None
        and item.get_closest_marker("gpu_budget")
        and not {"gpu", _DEVICE} & {*names}
    ):
        names.insert(0, _DEVICE)


@pytest.fixture
def _gpu_of_budget(request: pytest.FixtureRequest) -> Iterator[Gpu]:
    name, chosen = devices_for(request.node, request.config)
    with chosen as devices:
        request.node.add_report_section("setup", "simcuda", f"counted on {name}")
        yield devices


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a test with the marker; one that fails or is skipped keeps its own outcome."""
    marks = list(item.iter_markers("gpu_budget"))
    if not marks:
        return (yield)
    limits, laws = _limits(item, marks)
    from simcuda.assertions import check

    raised: BaseException | None = None
    result: object = None
    _, chosen = devices_for(item, item.config)
    try:
        with chosen as gpu, gpu.measure() as cost:
            try:
                result = yield
            except BaseException as error:
                raised = error
    finally:
        if raised is not None:
            raise raised
    try:
        check(cost, limits, laws)
    except AssertionError as error:
        raise pytest.fail.Exception(
            f"@pytest.mark.gpu_budget: {error}", pytrace=False
        ) from None
    return result


def _limits(
    item: pytest.Item, marks: Sequence[pytest.Mark]
) -> tuple[dict[str, int], dict[str, str]]:
    """The limits of a test, with the laws that they follow from; of each metric the closest marker's."""
    from finding_tickets.claims.language import (
        ExpressionError,
        evaluate,
        parse_expression,
        variables,
    )
    from simcuda import METRICS

    stated: dict[str, Any] = {}
    for mark in reversed(marks):
        if mark.args or not mark.kwargs:
            refuse(mark, f"it takes limits by name: {MARKER}")
        stated.update(mark.kwargs)
    at = _integers(getattr(getattr(item, "callspec", None), "params", {}))
    at |= _integers(getattr(item, "funcargs", {}))
    at |= {
        name: value for name, value in _integers(stated).items() if name not in METRICS
    }
    limits: dict[str, int] = {}
    laws: dict[str, str] = {}
    used: set[str] = set()
    for mark in marks:
        for name, limit in mark.kwargs.items():
            is_number = isinstance(limit, int) and not isinstance(limit, bool)
            if not is_number and not isinstance(limit, str):
                refuse(mark, f"{name}: {limit!r} is neither a number nor a law")
            if is_number and limit < 0:
                refuse(mark, f"{name}: {limit} is no limit; use a number from 0 on")
            try:
                law = parse_expression(str(limit))
                used.update(each.name for each in variables(law))
                if name in METRICS and name not in limits:
                    limits[name] = floor(evaluate(law, at))
                    laws |= {name: limit} if isinstance(limit, str) else {}
            except ExpressionError as error:
                refuse(
                    mark,
                    f"{name}: {error.message}"
                    + (f" ({error.hint})" if error.hint else ""),
                )
    for mark in marks:
        for name, limit in mark.kwargs.items():
            if name not in METRICS and (isinstance(limit, str) or name not in used):
                refuse(
                    mark, f"there is no metric {name!r}; there are {', '.join(METRICS)}"
                )
    if not limits:
        refuse(marks[0], f"it takes limits by name: {MARKER}")
    return limits, laws


def _integers(values: Mapping[str, object]) -> dict[str, int]:
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, int) and not isinstance(value, bool)
    }
