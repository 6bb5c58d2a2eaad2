"""How long a page takes in Chromium until it can be used, and what using it takes then.

A page can be used when its controls are shown: they are when the table can be filtered, sorted and searched.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

SECONDS = 2.0
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
    """Seconds until the controls are shown, to sort the table, to filter it, and to open a document."""

    usable: float
    sorting: float
    filtering: float
    opening: float


def measure(file: Path, rounds: int) -> bool | None:
    """Print what a page takes; whether the bound holds, None where there is no browser to ask."""
    program = shutil.which("chromium")
    if program is None:
        print("page      not measured: there is no chromium on the path")
        return None
    taken = Use(*(median(times) for times in zip(*_uses(file, program, rounds), strict=True)))
    print(
        f"page      {taken.usable:6.2f} s until it can be used (at most {SECONDS:g}),"
        f" {taken.sorting:.2f} s to sort, {taken.filtering:.2f} s to filter,"
        f" {taken.opening:.2f} s to open a document",
        flush=True,
    )
    return taken.usable <= SECONDS


def _uses(file: Path, program: str, rounds: int) -> Iterator[Use]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        # The first page also pays for what the browser does once.
        for number in range(rounds + 1):
            page = browser.new_page()
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
                yield Use(usable, sorting, filtering, time.perf_counter() - start)
            page.close()
        browser.close()
