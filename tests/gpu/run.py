"""Measure every pattern on a real GPU, or on the simulated one, and write what was counted as one JSON.

``PYTHONPATH=src:. python3 tests/gpu/run.py -o FILE``; with ``--by simulation`` no GPU is needed. Torch alone
is needed otherwise. The patterns run in processes of their own, ``--jobs`` at once: one that ends its process
is recorded with its error, and the others run in another.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.gpu.pattern import Pattern

STARTING_SECONDS = 180.0
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
    parser.add_argument("--jobs", type=int, default=1, help="how many processes measure at once")
    parser.add_argument("--minutes", type=float, default=8.0, help="stop in time; what is done is written")
    parser.add_argument("--only", default="", help="only patterns whose name contains this text")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        work(options.kind, options.by)
        return 0
    from tests.gpu.pattern import load

    patterns = load(options.kind)
    names = [name for name in patterns if options.only in name]
    recording = Recording(options.output)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        deadline = time.monotonic() + options.minutes * 60
        measured = ["--kind", options.kind, "--by", options.by]
        run_all(groups_of(names), recording, measured, deadline, options.jobs)
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
        self._lock = threading.RLock()

    def add(self, name: str, outcome: Outcome) -> None:
        """Keep an outcome; the file is written again every few seconds."""
        with self._lock:
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


def groups_of(names: Sequence[str]) -> list[list[str]]:
    """Return names by their first two parts: one process makes an operator's samples once."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault("/".join(name.split("/")[:2]), []).append(name)
    return list(groups.values())


def run_all(
    groups: Sequence[list[str]],
    recording: Recording,
    options: Sequence[str],
    deadline: float,
    jobs: int = 1,
) -> None:
    """Run patterns in so many processes at once, until each has an outcome or time is up.

    ``options`` are those of the command that say what is measured, and how.
    """
    left = deque(groups)
    threads = []
    for _ in range(jobs):
        threads.append(
            threading.Thread(target=run_job, args=(left, recording, options, deadline), daemon=True)
        )
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for group in left:
        for name in group:
            recording.add(name, {"error": "not run: time was up"})


def run_job(left: deque[list[str]], recording: Recording, options: Sequence[str], deadline: float) -> None:
    """Measure groups of patterns in one process after another, until there are none or time is up."""
    names: deque[str] = deque()
    while (left or names) and time.monotonic() < deadline:
        with Worker(options) as worker:
            machine, reason = worker.read("machine", STARTING_SECONDS, deadline)
            if reason:
                print(f"no process can be started: {reason}", file=sys.stderr)
                break
            recording.content["machine"] = machine
            measure_with(worker, left, names, recording, deadline)
    for name in names:
        recording.add(name, {"error": "not run: time was up"})


def measure_with(
    worker: Worker, left: deque[list[str]], names: deque[str], recording: Recording, deadline: float
) -> None:
    """Measure patterns in one process until it ends; ``names`` are left of the group that it was at."""
    while time.monotonic() < deadline:
        if not names:
            try:
                names.extend(left.popleft())
            except IndexError:
                return
        name = names[0]
        worker.ask(name)
        outcome, reason = worker.read("outcome", PATTERN_SECONDS, deadline)
        if reason and time.monotonic() >= deadline:
            return
        names.popleft()
        if reason:
            worker.end()
            recording.add(name, {"error": f"{reason}; exit status {worker.process.returncode}"})
            return
        recording.add(name, outcome)
        passed = f"{time.monotonic() - recording.started:6.1f} s"
        print(f"{passed} {name}: {outcome.get('error', 'done')}"[:150], file=sys.stderr)


class Worker:
    """A process that measures one pattern after another, as it is asked."""

    def __init__(self, options: Sequence[str]) -> None:
        command = [sys.executable, "-u", __file__, "--worker", "-o", os.devnull, *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._unread = b""

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()

    def ask(self, name: str) -> None:
        """Have a pattern measured; a process that has ended says so as its answer is read."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(name).encode() + b"\n")
            self.process.stdin.flush()

    def read(self, key: str, patience: float, deadline: float) -> tuple[dict[str, Any], str]:
        """Return what the process tells next under a key, or else the reason why it tells nothing."""
        assert self.process.stdout is not None
        until = min(time.monotonic() + patience, deadline)
        while True:
            *lines, self._unread = self._unread.split(b"\n")
            for line in lines:
                # Anything else has been printed by something in a pattern.
                if line.startswith(b'{"' + key.encode()):
                    return json.loads(line)[key], ""
            remaining = max(until - time.monotonic(), 0)
            ready, _, _ = select.select([self.process.stdout], [], [], remaining)
            if not ready:
                return {}, f"nothing came for {patience:.0f} s"
            read = os.read(self.process.stdout.fileno(), 1 << 20)
            if not read:
                self.process.wait()
                return {}, WORKER_ENDED
            self._unread += read


def work(kind: str, by: str) -> None:
    """Measure the patterns whose names are read, and print the outcome of each as a line of JSON."""
    import torch
    from tests.gpu.pattern import NothingToRunError, load

    # Many processes share the processors.
    torch.set_num_threads(1)
    patterns = load(kind)
    measurer = importlib.import_module(f"tests.gpu.by_{by}")
    machine = measurer.describe_machine()
    tell({"machine": machine})
    # Each measurement collects garbage: among all that was loaded, that takes a second.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        pattern = patterns[json.loads(line)]
        if not pattern.runs_on(machine["torch"]):
            tell({"outcome": {"error": f"needs torch {pattern.since}"}})
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
        tell({"outcome": outcome})
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
