"""docs/tutorial.md does what it says, from its first command to its last, and so does the README's beginning.

``python tests/test_tutorial.py`` writes what the commands print now into the pages, to be read as a diff.
There each ``tickets`` is a process. In the tests it asks this process, which has torch loaded.
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "## Try it", "docs/tutorial.md": None, "docs/budgets.md": "## What a budget says"}
"""Each with the heading before which its commands end, if they do not all belong to one session."""
BLOCK = re.compile(r"^(`{3,})(\w*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
PROMPT = "$ "
TYPED = re.compile(r"(?:.*\\\n)*.*")
"""A line, with those that it goes on in."""
YOURS = {
    r"\b[0-9a-f]{7,40}\b": "COMMIT",
    r"\b\d{4}-\d\d-\d\d\b": "DATE",
    r"\btorch ?\d+\.\d+\.\d+\b": "TORCH",
}
"""What the page says is the reader's own."""
ASKING = """
import json, os, socket, sys

with socket.socket(socket.AF_UNIX) as asking:
    asking.connect({address!r})
    socket.send_fds(asking, [b"\\n"], [1, 2])
    asking.sendall(json.dumps([os.getcwd(), sys.argv[1:], dict(os.environ)]).encode())
    asking.shutdown(socket.SHUT_WR)
    sys.exit(int(asking.recv(9)))
"""
"""A ``tickets`` that has another process do what it should, with its own output."""


@dataclass(frozen=True)
class Command:
    """Something to type, with what the page shows that it prints; None where it shows nothing."""

    text: str
    shown: str | None = None


@dataclass(frozen=True)
class Shell:
    """A folder of the reader's, in which one command runs after the other as in one terminal."""

    home: Path
    listening: socket.socket | None = None

    @staticmethod
    def opened(home: Path, listening: socket.socket | None = None) -> Shell:
        """A shell with ``tickets`` and ``python`` of this environment, where nobody has been before.

        With ``listening``, a socket, ``tickets`` asks this process.
        """
        tickets = "-m finding_tickets" if listening is None else str(home / "asking.py")
        for name, words in {"tickets": tickets, "python": ""}.items():
            script = home / "bin" / name
            script.parent.mkdir(exist_ok=True)
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            script.chmod(0o755)
        if listening:
            address = home / "socket"
            listening.bind(str(address))
            listening.listen()
            (home / "asking.py").write_text(ASKING.format(address=str(address)))
        (home / "you").mkdir()
        (home / "where").write_text(str(home / "you"))
        return Shell(home, listening)

    def run(self, text: str) -> subprocess.CompletedProcess[str]:
        """Run a command where the last one left off; its output is that of stdout and stderr, in order."""
        where = self.home / "where"
        script = f'set -e\ncd "$(cat {where})"\n{text}\npwd > {where}\n'
        command = ["bash", "-c", script]
        with (
            tempfile.TemporaryFile() as output,
            subprocess.Popen(
                command,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            ) as bash,
        ):
            if self.listening:
                answer_until_end(self.listening, bash)
            code = bash.wait(300)
            output.seek(0)
            return subprocess.CompletedProcess(command, code, output.read().decode())

    def said(self, output: str) -> str:
        """An output as it reads in a folder that is called as on the page."""
        return output.replace(str(self.home / "you"), "/home/you")

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        roles = [f"GIT_{role}" for role in ("AUTHOR", "COMMITTER")]
        person = {f"{role}_NAME": "You" for role in roles} | {f"{role}_EMAIL": "you@home" for role in roles}
        return {
            **kept,
            **person,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "HOME": str(self.home / "you"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "PATH": f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            # The page is written for a machine without a GPU.
            "CUDA_VISIBLE_DEVICES": "",
        }


def answer_until_end(listening: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Do what ``tickets`` asks for, until a process ends."""
    from tests.conftest import run_to

    end = os.pidfd_open(process.pid)
    try:
        while listening.fileno() in select.select([listening.fileno(), end], [], [])[0]:
            asking, _ = listening.accept()
            with asking, asking.makefile("rb") as asked:
                _, files, _, _ = socket.recv_fds(asking, 1, 2)
                folder, words, environment = json.load(asked)
                # As for a process whose output is no terminal.
                with (
                    os.fdopen(files[0], "w", encoding="utf-8") as out,
                    os.fdopen(files[1], "w", 1, "utf-8") as err,
                ):
                    code = run_to(out, err, Path(folder), *words, environment=environment)
                asking.sendall(str(code).encode())
    finally:
        os.close(end)


def commands(page: str) -> Iterator[Command]:
    """Every command of the page, in order."""
    for _, kind, block in BLOCK.findall(page):
        assert kind in {"sh", "console"}, f"the page has a block of another kind: {kind}"
        if kind == "sh":
            yield Command(block)
        else:
            nothing, *entries = f"\n{block}".split(f"\n{PROMPT}")
            assert not nothing, f"not printed by any command: {nothing}"
            yield from map(_entry, entries)


def _entry(text: str) -> Command:
    """A command behind its prompt, and what it prints."""
    typed, shown = TYPED.match(text), TYPED.sub("", text, count=1)
    assert typed is not None
    return Command(typed[0], shown.strip("\n"))


def general(text: str) -> str:
    """A text without what is the reader's own."""
    for pattern, name in YOURS.items():
        text = re.sub(pattern, name, text)
    return text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "end"), PAGES.items())
def test_a_page_prints_what_it_shows(tmp_path: Path, name: str, end: str | None) -> None:
    """Each command succeeds where the one before it left off, and prints exactly what the page shows."""
    page = (ROOT / name).read_text(encoding="utf-8")
    with socket.socket(socket.AF_UNIX) as listening:
        shell = Shell.opened(tmp_path, listening)
        for command in commands(page.partition(end)[0] if end else page):
            done = shell.run(command.text)
            printed = shell.said(done.stdout).rstrip("\n")
            assert 0 == done.returncode, f"{command.text}\n{printed}"
            assert (command.text, general(command.shown or "")) == (command.text, general(printed))


def test_what_is_the_readers_own_is_no_more_than_the_page_says() -> None:
    """Commits, dates and the version of torch are taken out; every other word and number is compared."""
    line = "2026-01-02  0b4c1f7a55  verified  syncs: 2*layers -> 1  h200-cuda13, torch 2.13.0  Add 12"
    assert "DATE  COMMIT  verified  syncs: 2*layers -> 1  h200-cuda13, TORCH  Add 12" == general(line)


def _rewrite(file: Path, end: str | None) -> None:
    """Write into a page what its commands print."""
    page = file.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell.opened(Path(folder))
        position = 0
        for command in commands(page.partition(end)[0] if end else page):
            typed = command.text if command.shown is None else PROMPT + command.text
            position = page.index(typed, position) + len(typed)
            printed = shell.said(shell.run(command.text).stdout).rstrip("\n")
            if command.shown is None or general(command.shown) == general(printed):
                continue
            shown = f"\n{command.shown}" if command.shown else ""
            page = page[:position] + (f"\n{printed}" if printed else "") + page[position + len(shown) :]
    file.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    for each, heading in PAGES.items():
        _rewrite(ROOT / each, heading)
