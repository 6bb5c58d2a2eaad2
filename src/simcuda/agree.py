"""``python -m simcuda.agree --trace FILE...``: compare the simulated device with traces of a real one."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from simcuda.real.trace import IncompleteTraceError
from simcuda.traces import report
from simcuda.traces.agreement import agreement_with
from simcuda.traces.events import NotATraceError
from simcuda.traces.kineto import read as read_trace


def main() -> int:
    """Print the agreement; return 1 if it falls short, 2 if a file is refused, 3 if nothing was decided."""
    parser = argparse.ArgumentParser(
        prog="python -m simcuda.agree", description=__doc__
    )
    parser.add_argument(
        "--trace",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="traces of PyTorch's profiler: each distinct call in them is replayed",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args()
    found = []
    refused = False
    for path in options.trace:
        try:
            found.append(agreement_with(read_trace(path)))
        except (NotATraceError, IncompleteTraceError, OSError) as error:
            print(f"error: {path}: {error}", file=sys.stderr)
            refused = True
    if found:
        as_json = options.format == "json"
        print(
            json.dumps(report.to_json(found), indent=2)
            if as_json
            else "\n".join(report.to_lines(found))
        )
    return 2 if refused else report.exit_code(found)


if __name__ == "__main__":
    sys.exit(main())
