"""``tickets report`` on 10 000 generated tickets that were read before; one in a hundred is measured.

The claims, of processor time and of memory at the peak: Markdown in at most 3 s, HTML in at most 10 s, each
below 500 MB; the page of HTML can be used in Chromium after at most 2 s. Wall time is shown beside them,
with the load of the machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import page
from generated import tickets, write_register
from listing import environment

from finding_tickets.markdown.reading import read_document
from finding_tickets.model.verification import Evidence, Verification
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.verify.evidence import inputs, read, write
from finding_tickets.verify.plan import plan

COUNT = 10_000
MEASURED = 100
"""One ticket in so many has evidence."""
MEGABYTES = 500
SECONDS = {"markdown": 3.0, "html": 10.0}
"""Processor time that a report in a format may take."""

OURS = Path(__file__).parents[1]
PATTERN = "B7-PT-02"
"""The ticket of this repository whose block, code and evidence the measured tickets have."""
EVIDENCE = "evidence"


class Run(NamedTuple):
    """What one process took: wall and processor time in seconds, and memory at its peak in MB."""

    wall: float
    seconds: float
    megabytes: float


def run(command: list[str], env: dict[str, str]) -> Run:
    """Run a command, which must succeed, with what it prints thrown away."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def write_measured_register(root: Path, count: int) -> None:
    """A register in which every hundredth ticket has a remediation and fresh evidence."""
    write_register(root, count)
    text = (OURS / f"tickets/{PATTERN}.md").read_text(encoding="utf-8")
    block = text[text.index("## Remediation") :].partition("\n## ")[0]
    for folder in ("fixes", "verifiers"):
        shutil.copytree(OURS / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for number, (path, _) in enumerate(tickets(count)):
        if number % MEASURED == 0:
            file = root / "tickets" / path
            file.write_text(f"{file.read_text(encoding='utf-8')}\n---\n\n{block}\n", encoding="utf-8")
            record(root, f"tickets/{path}")


def record(root: Path, path: str) -> None:
    """Give a document the evidence of the pattern, as if it had been measured now."""
    document = read_document((root / path).read_bytes(), path, Vocabulary())[0]
    planned = plan(document, root) if document else None
    if document is None or planned is None:
        raise ValueError(f"{path} has nothing to measure")
    (recorded,) = read(PATTERN, OURS, EVIDENCE)
    done = Verification(**{**vars(recorded.verification), "ticket": document.id.value})
    write(Evidence(inputs=inputs(planned, document, done), verification=done), root, EVIDENCE)


def main() -> int:
    """Print what a report of each format takes; 1 where a bound is exceeded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--only", choices=SECONDS)
    chosen = parser.parse_args()
    held = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        register, env = folder / "register", environment(folder)
        write_measured_register(register, chosen.count)
        for form, bound in SECONDS.items():
            if chosen.only in {None, form}:
                held &= measure(form, bound, register, folder / f"report.{form}", env, chosen.rounds)
        if chosen.only in {None, "html"}:
            held &= page.measure(folder / "report.html", chosen.rounds) is not False
    print(f"{chosen.count} tickets, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return int(not held)


def measure(form: str, bound: float, register: Path, output: Path, env: dict[str, str], rounds: int) -> bool:
    """Print what reports in one format take; whether the bounds hold."""
    command = [sys.executable, "-m", "finding_tickets", "report", "--root", str(register)]
    command += ["--format", form, "--output", str(output)]
    run(command, env)
    runs = [run(command, env) for _ in range(rounds)]
    seconds, peak = median(each.seconds for each in runs), max(each.megabytes for each in runs)
    wall, size = median(each.wall for each in runs), output.stat().st_size / 1e6
    print(
        f"{form:9} {seconds:6.2f} s of processor time (at most {bound:g}), {wall:6.2f} s wall,"
        f" {peak:4.0f} MB (below {MEGABYTES}), {size:.1f} MB written",
        flush=True,
    )
    return seconds <= bound and peak < MEGABYTES


if __name__ == "__main__":
    sys.exit(main())
