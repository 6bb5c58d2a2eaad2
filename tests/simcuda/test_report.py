"""What a measurement says of itself."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest
import torch

import simcuda
from simcuda import Measurement, SimulatedCuda
from simcuda.measurement import HEAVIEST_FIRST, METRICS


def read_twice(x: torch.Tensor) -> list[float]:
    """Two waits in one line, after an allocation."""
    y = x + 1
    return [y.sum().item(), (y * 2).sum().item()]


def line_of(function: object, below: int) -> int:
    """The line so many lines below the first one of a function."""
    assert inspect.isfunction(function)
    return inspect.getsourcelines(function)[1] + below


def test_the_metrics_are_all_numbers_of_a_measurement() -> None:
    """``METRICS`` names every counter and the three sums; libraries count in ``launches`` alone."""
    counters = {field.name for field in fields(Measurement) if not field.name.startswith("_")}
    assert counters | {"syncs", "launches", "retained_bytes"} == {*METRICS, "library_launches"}
    assert len(set(METRICS)) == len(METRICS)


def test_a_report_shows_lines_by_weight_and_every_total(
    gpu: SimulatedCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waits come before copies and copies before allocations, whatever their number, each with its source."""
    monkeypatch.chdir(Path(__file__).parent)
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        read_twice(x)
    reading, adding = line_of(read_twice, 3), line_of(read_twice, 2)
    # Three floats, their double (12 bytes each) and a sum (4 bytes) are live at once, in blocks of 512 bytes.
    expected = f"""\
count  what          where                            source
    2  drains        test_report.py:{reading} in read_twice  return [y.sum().item(), (y * 2).sum().item()]
    2  stream_syncs  test_report.py:{reading} in read_twice  return [y.sum().item(), (y * 2).sum().item()]
    2  d2h           test_report.py:{reading} in read_twice  return [y.sum().item(), (y * 2).sum().item()]
    3  allocations   test_report.py:{reading} in read_twice  return [y.sum().item(), (y * 2).sum().item()]
    1  allocations   test_report.py:{adding} in read_twice  y = x + 1

          2  syncs
          2  stream_syncs
          2  drains
          2  d2h
          8  d2h_bytes
          4  launches
          4  aten_launches
          4  allocations
         12  largest_allocation
         28  peak_bytes
       1536  peak_allocated_bytes
every other count is 0"""
    assert expected == cost.report()


def test_a_report_of_few_rows_says_how_many_are_left(gpu: SimulatedCuda) -> None:
    """Only the heaviest lines are shown where fewer are asked for."""
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        read_twice(x)
    head, site, _, more, *_ = cost.report(rows=1).splitlines()
    assert ("count", "drains", "and 4 more") == (head.split()[0], site.split()[1], more)


def test_files_elsewhere_keep_their_path_and_long_lines_are_cut() -> None:
    """A path that is not below the current folder stays whole; source that cannot be read is left out."""
    places = [(__file__, 1, "g"), ("/elsewhere/x.py", 3, "f"), ("<library>", 0, "aten::mm")]
    cost = Measurement(_sites={(*place, "d2h"): 3 - nth for nth, place in enumerate(places)})
    _, ours, theirs, library, *_ = cost.report().splitlines()
    assert theirs.endswith("  /elsewhere/x.py:3 in f")
    assert library.endswith("  <library> in aten::mm")
    assert ours.endswith('"""What a measurement says of itself."""')


def test_doubts_are_named(gpu: SimulatedCuda) -> None:
    """Operations that are not known or only modelled are part of the report."""
    x = torch.ones(2, 2, device="cuda")
    with gpu.measure() as cost:
        x @ x
    assert "approximate, so what is marked ~ is an estimate: aten.mm.default" in cost.report()
    assert "unknown" not in cost.report()
    unknown = Measurement(_unknown={"aten.odd.default"})
    assert "unknown, so their waits are not counted: aten.odd.default" in unknown.report()


def test_a_measurement_of_nothing_says_so() -> None:
    """Without any cost there is no table."""
    assert "every count is 0" == Measurement().report()


def test_every_kind_of_site_has_a_weight() -> None:
    """The kinds in the documentation of ``Site`` are those that a report knows how to order."""
    described = inspect.getdoc(simcuda.Site) or ""
    assert all(f"``{kind}``" in described for kind in HEAVIEST_FIRST)
    assert len(HEAVIEST_FIRST) == described.partition("what``")[2].count("``") // 2
