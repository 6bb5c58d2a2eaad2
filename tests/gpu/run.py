"""Measure every pattern on a real GPU, or on the simulated one, and write what was counted as one JSON.

``PYTHONPATH=src:. python3 tests/gpu/run.py -o FILE``; with ``--by simulation`` no GPU is needed. Torch alone
is needed otherwise. The patterns run in a process of their own: one that ends it is recorded with its error,
and the others run in another.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.gpu.pattern import Pattern

STARTING_SECONDS = 120.0
"""A process may take that long until it tells its machine, for CUDA starts in it."""
PATTERN_SECONDS = 45.0
WORKER_ENDED = "the process ended"

Outcome = dict[str, Any]
"""All that is recorded of one pattern."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="the JSON file; .gz packs it")
    parser.add_argument(
        "--by",
        choices=("profiler", "meter", "simulation"),
        default="profiler",
        help="what counts: PyTorch's profiler, or simcuda.real, or the simulated device",
    )
    parser.add_argument(
        "--kind",
        choices=("patterns", "op_db"),
        default="patterns",
        help="what is measured: the patterns, or PyTorch's samples of operators, which need numpy",
    )
    parser.add_argument("--minutes", type=float, default=8.0, help="stop in time; what is done is written")
    parser.add_argument("--only", default="", help="only patterns whose name contains this text")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        work(json.loads(sys.stdin.read()), options.kind, options.by)
        return 0
    from tests.gpu.pattern import load

    patterns = load(options.kind)
    names = [name for name in patterns if options.only in name]
    recording = Recording(options.output)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        deadline = time.monotonic() + options.minutes * 60
        run_all(names, recording, ["--kind", options.kind, "--by", options.by], deadline)
    finally:
        recording.write()
    print("\n".join(table(recording.content, patterns)))
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
        data = recorded_text(self.content).encode()
        # Packed alike whenever that is.
        aside.write_bytes(gzip.compress(data, mtime=0) if self.file.suffix == ".gz" else data)
        aside.replace(self.file)
        self._written = time.monotonic()


def recorded_text(content: dict[str, Any]) -> str:
    """Return the text of a recording: a line for each pattern, without what is 0 or empty."""
    lines = []
    for name, outcome in sorted(content["patterns"].items()):
        told = {key: without_zeros(value) for key, value in outcome.items() if value}
        lines.append(f"{json.dumps(name)}: {json.dumps(told, separators=(',', ':'))}")
    machine = json.dumps(content["machine"], sort_keys=True)
    return f'{{"machine": {machine}, "patterns": {{\n' + ",\n".join(lines) + "\n}}\n"


def without_zeros(value: Any) -> Any:
    """Return a table of numbers without those that are 0, and any other value as it is."""
    if isinstance(value, dict):
        return {key: number for key, number in sorted(value.items()) if number}
    return value


def read_recording(file: Path) -> dict[str, Any]:
    """Return what was written."""
    data = file.read_bytes()
    content: dict[str, Any] = json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)
    return content


def run_all(names: Sequence[str], recording: Recording, options: Sequence[str], deadline: float) -> None:
    """Run patterns in one process after another, until each has an outcome or time is up.

    ``options`` are those of the command that say what is measured, and how.
    """
    left = list(names)
    while left and time.monotonic() < deadline:
        before = len(left)
        with started_worker(left, options) as worker:
            reason = read_outcomes(worker, left, recording, deadline)
        if left and time.monotonic() < deadline:
            # The first that is left was running as the process ended.
            recording.add(left.pop(0), {"error": f"{reason}; exit status {worker.returncode}"})
        if before == len(left):
            break
    for name in left:
        recording.add(name, {"error": "not run: time was up"})


@contextmanager
def started_worker(names: Sequence[str], options: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that measures these patterns, and end it afterwards."""
    command = [sys.executable, "-u", __file__, "--worker", "-o", os.devnull, *options]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps(list(names)).encode())
    worker.stdin.close()
    try:
        yield worker
    finally:
        if worker.poll() is None:
            worker.kill()
        worker.wait()
        worker.stdout.close()


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


def work(names: Sequence[str], kind: str, by: str) -> None:
    """Measure patterns in this process, and print the outcome of each as a line of JSON."""
    from tests.gpu.pattern import NothingToRunError, load

    patterns = load(kind)
    measurer = importlib.import_module(f"tests.gpu.by_{by}")
    machine = measurer.describe_machine()
    tell({"machine": machine})
    for name in names:
        pattern = patterns[name]
        if not pattern.runs_on(machine["torch"]):
            tell({"name": name, "outcome": {"error": f"needs torch {pattern.since}"}})
            continue
        ends = False
        try:
            outcome = measurer.measure(pattern)
            outcome["runs"] = pattern.runs()
        except NothingToRunError as error:
            outcome = {"error": f"nothing to run: {error}"}
        except BaseException as error:
            outcome = {"error": "".join(traceback.format_exception_only(error)).strip()[:2000]}
            print(traceback.format_exc(), file=sys.stderr)
            # What fails on the device makes all that follows in this process fail.
            ends = "CUDA error" in str(error)
        tell({"name": name, "outcome": outcome})
        if ends:
            sys.exit(1)


def tell(line: dict[str, Any]) -> None:
    """Print one line of JSON for the process that started this one."""
    # A pattern may have begun a line.
    sys.stdout.write("\n" + json.dumps(line) + "\n")
    sys.stdout.flush()


def table(content: dict[str, Any], patterns: Mapping[str, Pattern]) -> list[str]:
    """Return the lines of the table: what agrees, by metric, and then each pattern that does not."""
    from tests.gpu.pattern import METRICS

    agreed, above_zero, refuted = Counter[str](), Counter[str](), Counter[str]()
    disagreeing: list[str] = []
    failed: list[str] = []
    for name, outcome in content["patterns"].items():
        if "error" in outcome:
            failed.append(f"{name}: {outcome['error']}")
            continue
        shown = []
        for metric, number in patterns[name].expected_on(content["machine"]["torch"]).items():
            counted = outcome["counted"].get(metric, 0)
            if counted == number:
                agreed[metric] += 1
                above_zero[metric] += number > 0
            else:
                refuted[metric] += 1
                shown.append(f"{metric} {counted} not {number}")
        if shown:
            disagreeing.append(f"{name}: {', '.join(shown)}")
    lines = [f"{content['machine']}"]
    lines += [f"{len(content['patterns'])} patterns, {len(failed)} without a measurement"]
    lines += ["metric       agrees  above 0  differs"]
    for metric in METRICS:
        lines.append(f"{metric:12} {agreed[metric]:6} {above_zero[metric]:8} {refuted[metric]:8}")
    return [*lines, "", "DIFFERS", *disagreeing, "", "FAILED", *failed]


if __name__ == "__main__":
    sys.exit(main())
