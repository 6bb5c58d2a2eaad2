"""Measure every pattern on a real GPU, or on the simulated one, and write what was counted as one JSON.

``PYTHONPATH=src:. python3 tests/gpu/run.py -o FILE``; with ``--simulated`` no GPU is needed. Torch alone is
needed otherwise. The patterns run in a process of their own: one that ends it is recorded with its error, and
the others run in another.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STARTING_SECONDS = 120.0
"""A process may take that long until it tells its machine, for CUDA starts in it."""
PATTERN_SECONDS = 45.0
WORKER_ENDED = "the process ended"

Outcome = dict[str, Any]
"""All that is recorded of one pattern."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a command; return 0 if all that was expected was counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--simulated", action="store_true", help="count on the simulated device")
    parser.add_argument("--minutes", type=float, default=8.0, help="stop in time; what is done is written")
    parser.add_argument("--only", default="", help="only patterns whose name contains this text")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        work(json.loads(sys.stdin.read()), simulated=options.simulated)
        return 0
    from tests.gpu.pattern import load

    names = [name for name in load() if options.only in name]
    recording = Recording(options.output)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run_all(names, recording, options.simulated, time.monotonic() + options.minutes * 60)
    finally:
        recording.write()
    print("\n".join(table(recording.content)))
    return 0


class Recording:
    """The file that is written: the machine, and the outcome of each pattern."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.content: dict[str, Any] = {"machine": {}, "patterns": {}}
        self.started = self._written = time.monotonic()

    def add(self, name: str, outcome: Outcome) -> None:
        """Keep an outcome; the file is written again every few seconds."""
        self.content["patterns"][name] = outcome
        if time.monotonic() - self._written > 5:
            self.write()

    def write(self) -> None:
        """Write the file anew."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        aside = self.file.with_name(f"{self.file.name}.part")
        aside.write_text(json.dumps(self.content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        aside.replace(self.file)
        self._written = time.monotonic()


def run_all(names: Sequence[str], recording: Recording, simulated: bool, deadline: float) -> None:
    """Run patterns in one process after another, until each has an outcome or time is up."""
    left = list(names)
    while left and time.monotonic() < deadline:
        before = len(left)
        with started_worker(left, simulated) as worker:
            reason = read_outcomes(worker, left, recording, deadline)
        if left and time.monotonic() < deadline:
            # The first that is left was running as the process ended.
            recording.add(left.pop(0), {"error": f"{reason}; exit status {worker.returncode}"})
        if before == len(left):
            break
    for name in left:
        recording.add(name, {"error": "not run: time was up"})


@contextmanager
def started_worker(names: Sequence[str], simulated: bool) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that measures these patterns, and end it afterwards."""
    command = [sys.executable, "-u", __file__, "--worker", "-o", os.devnull]
    if simulated:
        command.append("--simulated")
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(list(names)).encode())
    worker.stdin.close()
    try:
        yield worker
    finally:
        if worker.poll() is None:
            worker.kill()
        worker.wait()


def read_outcomes(
    worker: subprocess.Popen[bytes], left: list[str], recording: Recording, deadline: float
) -> str:
    """Take outcomes from a process, and their names out of ``left``; return why there are no more."""
    assert worker.stdout is not None
    patience = STARTING_SECONDS
    unread = b""
    while left:
        remaining = min(patience, deadline - time.monotonic())
        ready, _, _ = select.select([worker.stdout], [], [], max(remaining, 0))
        if not ready:
            return f"nothing came for {remaining:.0f} s"
        read = os.read(worker.stdout.fileno(), 1 << 20)
        if not read:
            worker.wait()
            return WORKER_ENDED
        *lines, unread = (unread + read).split(b"\n")
        for line in lines:
            if not line.startswith(b"{"):
                # Something in a pattern has printed this.
                continue
            told = json.loads(line)
            if "machine" in told:
                recording.content["machine"] = told["machine"]
                patience = PATTERN_SECONDS
                continue
            left.remove(told["name"])
            recording.add(told["name"], told["outcome"])
            passed = f"{time.monotonic() - recording.started:6.1f} s"
            print(f"{passed} {told['name']}: {told['outcome'].get('error', 'done')}"[:150], file=sys.stderr)
    return ""


def work(names: Sequence[str], *, simulated: bool) -> None:
    """Measure patterns in this process, and print the outcome of each as a line of JSON."""
    from tests.gpu.pattern import load

    patterns = load()
    measure: Callable[..., Outcome]
    if simulated:
        from tests.gpu.simulated import describe_machine, measure
    else:
        from tests.gpu.real import describe_machine, measure
    machine = describe_machine()
    tell({"machine": machine})
    for name in names:
        pattern = patterns[name]
        if not pattern.runs_on(machine["torch"]):
            tell({"name": name, "outcome": {"error": f"needs torch {pattern.since}"}})
            continue
        expected = pattern.expected_on(machine["torch"])
        ends = False
        try:
            outcome = measure(pattern)
        except BaseException as error:
            outcome = {"error": "".join(traceback.format_exception_only(error)).strip()[:2000]}
            outcome["traceback"] = traceback.format_exc()[-2000:]
            # What fails on the device makes all that follows in this process fail.
            ends = "CUDA error" in str(error)
        outcome["expected"] = expected
        outcome["differs"] = differences(expected, outcome)
        tell({"name": name, "outcome": outcome})
        if ends:
            sys.exit(1)


def tell(line: dict[str, Any]) -> None:
    """Print one line of JSON for the process that started this one."""
    # A pattern may have begun a line.
    sys.stdout.write("\n" + json.dumps(line) + "\n")
    sys.stdout.flush()


def differences(expected: dict[str, int], outcome: Outcome) -> dict[str, tuple[int, int | None]]:
    """Return the expected and the counted number of every metric in which they differ."""
    counted = outcome.get("counted", {})
    return {
        metric: (number, counted.get(metric))
        for metric, number in expected.items()
        if counted.get(metric) != number
    }


def table(content: dict[str, Any]) -> list[str]:
    """Return the lines of the table: what agrees, by metric, and then each pattern that does not."""
    agreed, above_zero, refuted = Counter[str](), Counter[str](), Counter[str]()
    disagreeing: list[str] = []
    failed: list[str] = []
    for name, outcome in content["patterns"].items():
        if "error" in outcome:
            failed.append(f"{name}: {outcome['error']}")
            continue
        for metric, number in outcome["expected"].items():
            if metric in outcome["differs"]:
                refuted[metric] += 1
            else:
                agreed[metric] += 1
                above_zero[metric] += number > 0
        if outcome["differs"]:
            shown = [f"{metric} {was} not {want}" for metric, (want, was) in outcome["differs"].items()]
            disagreeing.append(f"{name}: {', '.join(shown)}")
    lines = [f"{content['machine']}"]
    lines += [f"{len(content['patterns'])} patterns, {len(failed)} without a measurement"]
    lines += ["metric       agrees  above 0  differs"]
    for metric in agreed.keys() | refuted.keys():
        lines.append(f"{metric:12} {agreed[metric]:6} {above_zero[metric]:8} {refuted[metric]:8}")
    return [*lines, "", "DIFFERS", *disagreeing, "", "FAILED", *failed]


if __name__ == "__main__":
    sys.exit(main())
