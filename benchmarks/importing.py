"""The findings in a large log in SARIF, against what ``json.loads`` takes to read the same file.

Reading JSON is the first step of any import; it does not tell yet what a result is and whether it is known.
The claims are ratios of processor time of at most 1.5, and of memory at the peak of at most 0.6.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.command import main
from benchmarks.result import Bound, Number, Result, Size
from finding_tickets.importers.sarif import read_log

TIME, MEMORY = Bound(1.5), Bound(0.6)
RESULTS = {Size.FULL: 50_000, Size.QUICK: 10_000, Size.LEAST: 100}
ROUNDS = {Size.FULL: 5, Size.QUICK: 3, Size.LEAST: 1}
READ = "--read"
READERS = {
    "json.loads": lambda data: len(json.loads(data)["runs"][0]["results"]),
    "finding-tickets": lambda data: len(read_log(data, "log", ["/root"])),
}


def log(count: int) -> Any:
    """Results as large tools write them: a snippet, a flow of five steps, and the text of 300 rules."""
    rules = [{"id": f"R{number}", "help": {"text": "why " * 500}} for number in range(300)]
    step = {"location": {"message": {"text": "then it goes on " * 6}}}
    flow = [{"threadFlows": [{"locations": [step] * 5}]}]
    results = [
        {
            "ruleId": f"R{number % 300}",
            "message": {"text": f"v{number} waits for the device in f{number % 77}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": f"src/p{number % 1000}.py", "uriBaseId": "%SRCROOT%"},
                        "region": {
                            "startLine": number % 5000 + 1,
                            "snippet": {"text": "x = y.item()  " * 20},
                        },
                    }
                }
            ],
            "codeFlows": flow,
            "partialFingerprints": {"primaryLocationLineHash": f"{number:x}:1"},
        }
        for number in range(count)
    ]
    return {
        "version": "2.1.0",
        "runs": [{"tool": {"driver": {"name": "t", "rules": rules}}, "results": results}],
    }


def taken(reader: str, file: Path, count: int) -> tuple[float, float]:
    """Seconds of processor time that a process takes to read the file, and MB at its peak."""
    line = [sys.executable, "-m", "benchmarks.importing", READ, reader, str(file), str(count)]
    seconds, size = subprocess.run(line, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(size)


def read(reader: str, file: str, count: str) -> None:
    """Read the file in this process, and print what that took."""
    data = Path(file).read_bytes()
    before = time.process_time()
    if READERS[reader](data) != int(count):
        raise SystemExit(f"{reader} did not read all of {file}")
    print(time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)


def measure(size: Size) -> Iterator[Result]:
    """Both readers, interleaved."""
    count = RESULTS[size]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.sarif"
        file.write_text(json.dumps(log(count)))
        written = Number("the log", file.stat().st_size / 1e6, "MB")
        rounds = [[taken(reader, file, count) for reader in READERS] for _ in range(ROUNDS[size])]
    for place, (kind, unit, bound) in enumerate((("time", "s", TIME), ("memory", "MB", MEMORY))):
        theirs, ours = (median(each[place] for each in reader) for reader in zip(*rounds, strict=True))
        yield Result(
            name=f"importing-{kind}",
            what=f"{kind}: findings of a log in SARIF / json.loads",
            value=median(ours[place] / theirs[place] for theirs, ours in rounds),
            bound=bound,
            beside=(Number("findings", ours, unit), Number("json.loads", theirs, unit), written),
        )


if __name__ == "__main__":
    if sys.argv[1:2] == [READ]:
        read(*sys.argv[2:])
    else:
        sys.exit(main(measure, __doc__))
