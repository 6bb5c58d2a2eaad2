"""``python -m simcuda.record``: record what many cases cost on a CUDA device, or on the simulated one."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from dataclasses import asdict
from functools import partial
from math import inf
from pathlib import Path

from simcuda.profile import DEFAULT_PROFILE, PROFILES
from simcuda.real import CannotCountError
from simcuda.recording.recorder import CASE_SECONDS, CannotRecordError, record, say_on_stderr, write_recording
from simcuda.recording.selection import Selection
from simcuda.recording.worker import REAL, SIMULATED

SAMPLES = 5
"""Of 27 on average: all of them would take the real device more than a few minutes."""


def main() -> int:
    """Make a recording; return 2 if that is impossible."""
    parser = argparse.ArgumentParser(prog="python -m simcuda.record", description=__doc__)
    parser.add_argument(
        "-o", "--output", type=_new_file, required=True, metavar="FILE", help="ends in .json.gz"
    )
    parser.add_argument("--device", choices=(REAL, SIMULATED), default=REAL)
    parser.add_argument(
        "--profile",
        choices=tuple(PROFILES),
        default=DEFAULT_PROFILE,
        help="the profile for --device simulated",
    )
    parser.add_argument(
        "--cases",
        nargs="+",
        action="extend",
        default=[],
        metavar="PATH",
        help="verifier files, or folders of them",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="ids of cases, such as 'op/index*'"
    )
    parser.add_argument(
        "--samples",
        type=partial(_positive, int),
        default=SAMPLES,
        metavar="N",
        help="samples of each operator, evenly spread",
    )
    parser.add_argument(
        "--minutes",
        type=partial(_positive, float),
        default=inf,
        help="stop after this time, and write what is done",
    )
    parser.add_argument(
        "--timeout",
        type=partial(_positive, float),
        default=CASE_SECONDS,
        metavar="SECONDS",
        help="the limit for one case",
    )
    options = parser.parse_args()
    selection = Selection(options.samples, tuple(options.only), tuple(options.cases))
    profile = asdict(PROFILES[options.profile]) if options.device == SIMULATED else None
    try:
        recording = record(
            selection,
            profile,
            case_seconds=options.timeout,
            all_seconds=60 * options.minutes,
            say=say_on_stderr,
        )
    except CannotCountError as error:
        say_on_stderr(f"error: {error}; --device simulated records the simulation instead")
        return 2
    except (CannotRecordError, FileNotFoundError) as error:
        say_on_stderr(f"error: {error}")
        return 2
    path = options.output
    # What is done is worth keeping, also after the time is up or an interrupt.
    write_recording(recording, path)
    kinds = ("counts", "error", "not_run", "lost")
    ended = Counter(next(kind for kind in kinds if kind in case) for case in recording.cases.values())
    maker = (
        "the simulation" if recording.environment["made_by"] == SIMULATED else recording.environment["device"]
    )
    sizes = f"{len(recording.cases)} cases, {path.stat().st_size:,} bytes, made by {maker}"
    counted, lost = f"{ended['counts']} counted", f"{ended['not_run']} not run, {ended['lost']} lost"
    say_on_stderr(f"{path}: {sizes}: {counted}, {ended['error']} ended with an error, {lost}")
    return 0


def _new_file(text: str) -> Path:
    """A path that can be written to, checked before minutes of recording."""
    path = Path(text)
    # The file is written at the end, so that a wrong path would lose everything.
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{path} is a folder")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{path} cannot be written")
    return path


def _positive(kind: type[int] | type[float], text: str) -> float:
    """A number above 0, of a type."""
    try:
        value = kind(text)
    except ValueError:
        value = kind(0)
    # Written so that it refuses ``nan`` too.
    if not value > 0:
        raise argparse.ArgumentTypeError(f"a number above 0 is needed, not {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
