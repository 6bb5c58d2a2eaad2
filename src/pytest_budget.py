"""The pytest plugin of budgets: the most that a test may cost, and where a suite may wait.

pytest imports this module in every run, so everything else is imported once it is asked for.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from math import floor
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_simcuda import devices_for

if TYPE_CHECKING:
    from simcuda import Gpu

MARKER = 'gpu_budget(syncs=0, peak_bytes="6*batch*seq")'
_DEVICE = "_gpu_of_budget"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    meaning = (
        "the most that the test may cost, by metric: numbers, or laws in its arguments that are integers"
    )
    config.addinivalue_line("markers", f"{MARKER}: {meaning}")


@pytest.hookimpl(trylast=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Open devices for a test with the marker before its fixtures are made."""
    names = getattr(item, "fixturenames", None)
    if names is not None and item.get_closest_marker("gpu_budget") and not {"gpu", _DEVICE} & {*names}:
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
    failure = ""
    try:
        check(cost, limits, laws)
    except AssertionError as error:
        failure = str(error)
    if failure:
        pytest.fail(f"@pytest.mark.gpu_budget: {failure}", pytrace=False)
    return result


def _limits(item: pytest.Item, marks: Sequence[pytest.Mark]) -> tuple[dict[str, int], dict[str, str]]:
    """The limits of a test, with the laws that they follow from; of each metric the closest marker's."""
    from finding_tickets.claims.language import ExpressionError, evaluate, parse_expression, variables
    from simcuda import METRICS

    stated: dict[str, Any] = {}
    for mark in reversed(marks):
        if mark.args or not mark.kwargs:
            _refuse(mark, f"it takes limits by name: {MARKER}")
        stated.update(mark.kwargs)
    at = _integers(getattr(getattr(item, "callspec", None), "params", {}))
    at |= _integers(getattr(item, "funcargs", {}))
    at |= {name: value for name, value in _integers(stated).items() if name not in METRICS}
    limits: dict[str, int] = {}
    laws: dict[str, str] = {}
    used: set[str] = set()
    wrong = ""
    for mark in marks:
        for name, limit in mark.kwargs.items():
            is_number = isinstance(limit, int) and not isinstance(limit, bool)
            if not is_number and not isinstance(limit, str):
                _refuse(mark, f"{name}: {limit!r} is neither a number nor a law")
            if is_number and limit < 0:
                _refuse(mark, f"{name}: {limit} is no limit; use a number from 0 on")
            try:
                law = parse_expression(str(limit))
                used.update(each.name for each in variables(law))
                if name in METRICS and name not in limits:
                    limits[name] = floor(evaluate(law, at))
                    laws |= {name: limit} if isinstance(limit, str) else {}
            except ExpressionError as error:
                wrong = f"{name}: {error.message}" + (f" ({error.hint})" if error.hint else "")
            if wrong:
                _refuse(mark, wrong)
    for mark in marks:
        for name, limit in mark.kwargs.items():
            if name not in METRICS and (isinstance(limit, str) or name not in used):
                _refuse(mark, f"there is no metric {name!r}; there are {', '.join(METRICS)}")
    if not limits:
        _refuse(marks[0], f"it takes limits by name: {MARKER}")
    return limits, laws


def _integers(values: Mapping[str, object]) -> dict[str, int]:
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, int) and not isinstance(value, bool)
    }


def _refuse(mark: pytest.Mark, why: str) -> NoReturn:
    given = [*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())]
    pytest.fail(f"@pytest.mark.gpu_budget({', '.join(given)}): {why}", pytrace=False)
