"""The page of the library: what it shows to paste runs, and prints what it says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

import simcuda
from simcuda.costs import declared

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[2] / "docs/simcuda.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(section: str) -> list[tuple[str, str]]:
    """Kind and text of every block below a heading."""
    _, found, rest = PAGE.partition(f"\n## {section}\n")
    assert found
    return [(kind, text) for kind, text in BLOCK.findall(rest.partition("\n## ")[0])]


def test_every_block_of_the_page_is_tried() -> None:
    """The blocks are those of the sections that are tried below."""
    tried = (
        *("A first test", "Without pytest", "Code that may wait", "A whole test suite"),
        "Operators of other libraries",
    )
    assert [block for section in tried for block in blocks(section)] == BLOCK.findall(PAGE)


def test_the_first_test_passes_and_fails_as_shown(pytester: pytest.Pytester) -> None:
    """As shown it passes; with the limit that the text proposes it prints the lines below it."""
    (_, test), (_, message) = blocks("A first test")
    pytester.makepyfile(test_step=test)
    pytester.runpytest("--simcuda-real=never").assert_outcomes(passed=1)
    pytester.makepyfile(test_step=test.replace("syncs=1", "syncs=0"))
    result = pytester.runpytest("--simcuda-real=never")
    result.assert_outcomes(failed=1)
    assert message in "\n".join(result.outlines)


def test_the_script_prints_the_report_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder of its own the script prints exactly what the page shows."""
    (_, script), (_, printed) = blocks("Without pytest")
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(script, encoding="utf-8")
    runpy.run_path("train.py", run_name="__main__")
    assert (printed, "") == capsys.readouterr()


def test_the_region_shown_counts_to_no_limit(capsys: pytest.CaptureFixture[str]) -> None:
    """Of 201 steps three are logged, each by one wait."""
    ((_, script),) = blocks("Code that may wait")
    names: dict[str, Any] = {}
    exec(script, names)  # noqa: S102 - it is the page's
    with simcuda.device(), simcuda.assert_no_syncs() as cost:
        for step in range(201):
            names["log"](step, torch.ones((), device="cuda"))
    assert (3, "1.0\n" * 3) == (cost.syncs, capsys.readouterr().out)


def test_the_suite_prints_the_table_shown(pytester: pytest.Pytester) -> None:
    """The command of the page, on the file that it shows, ends with the table that it shows."""
    (_, command), (_, tests), (_, printed) = blocks("A whole test suite")
    file = pytester.mkdir("tests") / "test_gpu.py"
    file.write_text(tests, encoding="utf-8")
    result = pytester.runpytest(*command.split()[1:])
    result.assert_outcomes(passed=1, failed=1)
    assert printed in "\n".join(result.outlines)


def test_the_declaration_is_listed_as_the_text_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is declared with what the text says that a measurement lists."""
    monkeypatch.setattr(declared, "_declared", {})
    ((_, script),) = blocks("Operators of other libraries")
    exec(script, {})  # noqa: S102 - it is the page's
    (said,) = declared.declarations()
    assert f"`approximate` lists `{said}`" in PAGE


def test_every_public_name_is_described() -> None:
    """The table of the API has each name, and no other."""
    _, _, api = PAGE.partition("\n## The API\n")
    cells = re.findall(r"^\| (`.*?) \|", api.partition("\n## ")[0], re.MULTILINE)
    assert sorted(simcuda.__all__) == sorted(name for cell in cells for name in re.findall(r"`(\w+)", cell))


def test_every_option_of_the_fixture_is_described(pytester: pytest.Pytester) -> None:
    """The table of the fixture has each option that ``pytest --help`` shows, and no other."""
    shown = set(re.findall(r"--simcuda-\w+", "\n".join(pytester.runpytest("--help").outlines)))
    _, _, fixture = PAGE.partition("\n## The fixture\n")
    assert shown == set(re.findall(r"^\| `(--simcuda-\w+)", fixture, re.MULTILINE))
