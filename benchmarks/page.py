"""How long a page takes in Chromium until it can be used, and what using it takes then.

A page can be used when its controls are shown: they are when the table can be filtered, sorted and searched.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.result import Bound, Number, Result

SECONDS = Bound(2.0)
"""How long a page of 10 000 tickets may take until it can be used."""
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
TURN = """async act => {
    const start = performance.now();
    document.querySelector(act).click();
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    return (performance.now() - start) / 1000;
}"""
"""Clicks something and waits until what comes of it has been painted."""


class Use(NamedTuple):
    """Seconds until an empty page is shown, and these controls; to sort, to filter, to open a document."""

    nothing: float
    usable: float
    sorting: float
    filtering: float
    opening: float


def measure(file: Path, rounds: int) -> Result:
    """What a page takes, beside a page without anything; nothing where there is no browser to ask."""
    claim: dict[str, Any] = {
        "name": "report-page",
        "what": "the page of HTML, until it can be used in Chromium",
        "unit": "s",
        "bound": SECONDS,
    }
    program = shutil.which("chromium")
    if program is None:
        return Result(**claim, missing="there is no chromium on the path")
    if find_spec("playwright") is None:
        return Result(**claim, missing="playwright, which asks the browser, is not installed")
    taken = Use(*(median(times) for times in zip(*_uses(file, program, rounds), strict=True)))
    return Result(
        **claim,
        value=taken.usable,
        beside=(
            Number("an empty page", taken.nothing, "s"),
            Number("to sort", taken.sorting, "s"),
            Number("to filter", taken.filtering, "s"),
            Number("to open a document", taken.opening, "s"),
        ),
    )


def _uses(file: Path, program: str, rounds: int) -> Iterator[Use]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        # The first page also pays for what the browser does once.
        for number in range(rounds + 1):
            page = browser.new_page()
            start = time.perf_counter()
            page.goto("data:text/html,<p id=filters>empty", wait_until="commit")
            page.wait_for_selector("#filters")
            nothing = time.perf_counter() - start
            start = time.perf_counter()
            page.goto(file.as_uri(), wait_until="commit")
            page.wait_for_selector("#filters")
            usable = time.perf_counter() - start
            page.wait_for_load_state()
            sorting = page.evaluate(TURN, "#table th:last-child button")
            filtering = page.evaluate(TURN, "#filters [type=checkbox]")
            start = time.perf_counter()
            page.evaluate("document.querySelector('#table tbody a').click()")
            page.wait_for_selector("details.document[open]")
            if number:
                yield Use(nothing, usable, sorting, filtering, time.perf_counter() - start)
            page.close()
        browser.close()
