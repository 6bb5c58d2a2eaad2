"""``python -m simcuda.agree``: compare the simulated device with a recording, case by case."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from operator import attrgetter
from pathlib import Path

from simcuda.measurement import table
from simcuda.real.trace import IncompleteTraceError
from simcuda.recording.comparison import (
    LEAST_COMPARABLE,
    PEAK_TOLERANCE,
    RecordingAgreement,
    compare,
)
from simcuda.recording.recorder import (
    CannotRecordError,
    NotARecordingError,
    Recording,
    read_recording,
    record,
    say_on_stderr,
)
from simcuda.recording.worker import SIMULATED
from simcuda.traces import report
from simcuda.traces.agreement import agreement_with
from simcuda.traces.events import NotATraceError
from simcuda.traces.kineto import read as read_trace

ITSELF = "MADE BY THE SIMULATION ITSELF: this shows that it repeats itself, and nothing about real CUDA."


def main() -> int:
    """Print the agreement; return 1 if it falls short, 2 if a file is refused, 3 if nothing was decided."""
    parser = argparse.ArgumentParser(prog="python -m simcuda.agree", description=__doc__)
    parser.add_argument("recording", type=Path, nargs="?", metavar="RECORDING")
    parser.add_argument(
        "--trace",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="compare with traces of PyTorch's profiler instead: each distinct call in them is replayed",
    )
    parser.add_argument(
        "--save",
        type=Path,
        metavar="FILE",
        help="add to FILE, by operation, what the traces confirm, as in recorded.json of this package",
    )
    parser.add_argument(
        "--tolerance",
        type=_share,
        default=PEAK_TOLERANCE,
        metavar="SHARE",
        help="relative error allowed in the peak of requested bytes (default: %(default)s)",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="ids of cases, such as 'op/index*'"
    )
    parser.add_argument(
        "--cases",
        nargs="+",
        default=[],
        metavar="PATH",
        help="where the recorded verifier files are now",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args()
    if bool(options.trace) == (options.recording is not None):
        parser.error("give either a recording or --trace FILE...")
    if options.trace:
        return _agree_with_traces(options.trace, options.format, options.save)
    if options.save:
        parser.error("--save needs --trace FILE...")
    only, cases = tuple(options.only), tuple(options.cases)
    try:
        found = agreement(
            read_recording(options.recording), only, cases, options.tolerance, say=say_on_stderr
        )
    except (NotARecordingError, CannotRecordError, OSError) as error:
        say_on_stderr(f"error: {error}")
        return 2
    if options.format == "json":
        print(json.dumps({"schema_version": 1, "kind": "agreement", "data": asdict(found)}, indent=2))
    else:
        print("\n".join(to_lines(found)))
    return int(found.falls_short)


def _agree_with_traces(paths: Sequence[Path], how: str, save: Path | None) -> int:
    found, refused = [], False
    for path in paths:
        try:
            found.append(agreement_with(read_trace(path)))
        except (NotATraceError, IncompleteTraceError, OSError) as error:
            say_on_stderr(f"error: {path}: {error}")
            refused = True
    if found and save:
        report.save_confirmations(found, save)
    if found:
        as_json = how == "json"
        print(json.dumps(report.to_json(found), indent=2) if as_json else "\n".join(report.to_lines(found)))
    return 2 if refused else report.exit_code(found)


def agreement(
    recording: Recording,
    only: tuple[str, ...] = (),
    cases: tuple[str, ...] = (),
    tolerance: float = PEAK_TOLERANCE,
    *,
    say: Callable[[str], object] = str,
) -> RecordingAgreement:
    """Run the cases of a recording on the simulation, under its profile, and compare.

    Args:
        recording: The recording.
        only: Patterns; the id of a case must match one of them. Without any, all are compared.
        cases: Where the verifier files are, if not where the recording says.
        tolerance: The relative error allowed in the peak of requested bytes.
        say: Called with messages about the progress.

    Raises:
        CannotRecordError: No case of the recording is selected.
        FileNotFoundError: A verifier file of the recording is not there.
    """
    # Only what was recorded can be compared: patterns narrow the recording's own selection.
    asked = recording.selection
    wanted = replace(asked, only=only, within=asked.only, cases=cases or asked.cases)
    return compare(recording, record(wanted, recording.environment["profile"], say=say), tolerance)


def to_lines(found: RecordingAgreement) -> Iterator[str]:
    """The agreement as text."""
    of, is_simulated = found.recording, found.made_by == SIMULATED
    where = "simulated" if is_simulated else f"{of['device']}, driver {of['driver']}"
    yield f"recorded: {of['profile']['name']} ({where}), CUDA {of['cuda']}, torch {of['torch']}"
    if is_simulated:
        yield ITSELF
    yield f"compared: {found.compared} cases"
    yield ""
    shares = []
    for tally in found.metrics:
        least = "-" if tally.least is None else f"{tally.least:.0%}"
        counts = [tally.metric, str(tally.agreed), str(tally.compared), f"{tally.share:.2%}"]
        shares.append([*counts, least + (" falls short" if tally.falls_short else "")])
    yield from table([["metric", "agrees", "of", "share", "least"], *shares])
    head = ["case", "metric", "recorded", "simulated"]
    cells = attrgetter(*head)
    sections: list[tuple[str, list[str], Sequence[Sequence[str]]]] = [
        (
            "disagreements",
            [*head, ""],
            [
                [*cells(each), f"unknown or approximate: {', '.join(each.unsure)}" if each.unsure else ""]
                for each in found.disagreements
            ],
        ),
        ("explained by version", [*head, "why"], [[*cells(each), each.why] for each in found.explained]),
        ("no longer comparable", ["case", "why"], [[each.case, each.why] for each in found.not_comparable]),
        (
            "nothing recorded to compare with",
            ["case", "why"],
            [[each.case, each.why] for each in found.not_recorded],
        ),
    ]
    for title, columns, rows in sections:
        yield from report.section(title, columns, rows)
    if found.comparable < LEAST_COMPARABLE:
        yield from ["", f"only {found.comparable:.1%} of the recorded cases are comparable: record again"]
    yield from ["", "falls short" if found.falls_short else "agrees"]


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"a share from 0 to 1 is needed, such as 0.01, not {text}")
    return share


if __name__ == "__main__":
    sys.exit(main())
