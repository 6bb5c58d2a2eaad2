"""Recordings as files: compressed JSON, the same bytes for the same content."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simcuda.recording.selection import Selection

FORMAT = "simcuda-recording"
VERSION = 1


class NotARecordingError(Exception):
    """A file is not a recording, or is of another version."""


@dataclass(frozen=True)
class Recording:
    """What cases cost on one device.

    Attributes:
        environment: What the counts depend on: ``made_by`` (``real`` or ``simulated``), ``device``,
            ``driver``, ``cuda``, ``torch``, ``python`` and the ``profile`` for a comparable simulation.
        selection: Which cases were asked for.
        left_out: Suites that did not run, or not to their end, each with the reason.
        cases: How each case ended, by its id, in the order of running. Beside the ``digest`` of what ran
            there is one of ``counts`` (those that are not 0, perhaps with ``unknown`` and ``approximate``
            operations), ``error`` (the exception with which it ended), ``not_run`` (why there was nothing
            to run) and ``lost`` (how its process ended).
    """

    environment: dict[str, Any]
    selection: Selection
    left_out: dict[str, str]
    cases: dict[str, dict[str, Any]]


def write(recording: Recording, path: Path) -> None:
    """Write a recording, compressed where the path ends in ``.gz``."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        **recording.environment,
        "selection": vars(recording.selection),
        "left_out": recording.left_out,
    }
    # A line for each case, so that two recordings can be compared by eye.
    lines = (
        f"{json.dumps(id_)}: {json.dumps(case, separators=(',', ':'))}"
        for id_, case in recording.cases.items()
    )
    text = f'{{"header": {json.dumps(header)},\n"cases": {{\n' + ",\n".join(lines) + "\n}}\n"
    data = text.encode()
    # Without a name and a time inside, the same content is the same file.
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def read(path: Path) -> Recording:
    """The recording in a file.

    Raises:
        NotARecordingError: It holds none that this version reads.
        OSError: It cannot be read.
    """
    try:
        data = path.read_bytes()
        content = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
        header, cases = content["header"], content["cases"]
        if (header.pop("format"), header.pop("version")) != (FORMAT, VERSION):
            raise NotARecordingError(f"{path}: not version {VERSION} of a recording")
        selection, left_out = Selection.from_json(header.pop("selection")), header.pop("left_out")
    except (ValueError, KeyError, TypeError, EOFError, gzip.BadGzipFile) as error:
        raise NotARecordingError(f"{path}: not a recording: {error}") from None
    return Recording(header, selection, left_out, cases)
