"""The findings in a large log in SARIF, against what ``json.loads`` takes to read the same file.

Reading JSON is the first step of any import; it does not tell yet what a result is and whether it is known.
The claims are ratios of processor time of at most 1.5, and of memory at the peak of at most 0.6.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from finding_tickets.register.importing.log import read_log
from finding_tickets.register.importing.results import found_in

TIME, MEMORY = 1.5, 0.6
RESULTS = 50_000
READERS = {
    "json.loads": lambda data: len(json.loads(data)["runs"][0]["results"]),
    "finding-tickets": lambda data: sum(1 for _ in found_in(read_log(data, "log"), ["/root"])),
}


def log() -> Any:
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
        for number in range(RESULTS)
    ]
    return {
        "version": "2.1.0",
        "runs": [{"tool": {"driver": {"name": "t", "rules": rules}}, "results": results}],
    }


def measure(reader: str, file: Path) -> tuple[float, int]:
    """Seconds of processor time that a process takes to read the file, and bytes at its peak."""
    line = [sys.executable, __file__, "--read", reader, str(file)]
    seconds, size = subprocess.run(line, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), int(size)


def read(reader: str, file: str) -> None:
    """Read the file in this process, and print what that took."""
    data = Path(file).read_bytes()
    before = time.process_time()
    if READERS[reader](data) != RESULTS:
        raise SystemExit(f"{reader} did not read all of {file}")
    print(time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def main() -> int:
    """Interleave both, print medians and the medians of their ratios; 1 where a bound is exceeded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--read", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        read(*arguments.read)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.sarif"
        file.write_text(json.dumps(log()))
        print(f"{RESULTS} results, {file.stat().st_size / 1e6:.0f} MB")
        rounds = [[measure(reader, file) for reader in READERS] for _ in range(arguments.rounds)]
    for name, taken in zip(READERS, zip(*rounds, strict=True), strict=True):
        seconds, sizes = zip(*taken, strict=True)
        print(f"{name:16}{median(seconds):7.2f} s {median(sizes) / 1e6:7.0f} MB")
    slower = median(ours[0] / theirs[0] for theirs, ours in rounds)
    larger = median(ours[1] / theirs[1] for theirs, ours in rounds)
    print(f"ratio of time   {slower:7.2f} (at most {TIME})")
    print(f"ratio of memory {larger:7.2f} (at most {MEMORY})")
    return int(slower > TIME or larger > MEMORY)


if __name__ == "__main__":
    sys.exit(main())
