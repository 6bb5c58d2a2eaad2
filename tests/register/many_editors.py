"""Run as a program: many processes, each with a command line of its own, that start at the same moment.

Reads a JSON list of command lines and prints a list of their exit codes and messages, in the same order.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from finding_tickets.cli.main import COMMANDS, application, run


def start(arguments: list[str], gate: int, messages: Path) -> int:
    """A process that waits until the gate is closed, and then runs a command line."""
    child = os.fork()
    if child == 0:
        os.read(gate, 1)
        descriptor = os.open(messages, os.O_CREAT | os.O_WRONLY)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        code = run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return child


def main(lines: list[list[str]]) -> None:
    """Start them all, let them go together, and collect what became of each."""
    # What each of them would import takes longer than what it does: imported once, they really compete.
    application(COMMANDS)
    gate, opener = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(number) for number, _ in enumerate(lines)]
        children = [start(line, gate, file) for line, file in zip(lines, files, strict=True)]
        os.write(opener, bytes(len(lines)))
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        json.dump([[code, file.read_text()] for code, file in zip(codes, files, strict=True)], sys.stdout)


if __name__ == "__main__":
    main(json.load(sys.stdin))
