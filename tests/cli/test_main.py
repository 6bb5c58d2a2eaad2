"""How a command line ends: each failure is one message and a documented exit code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Repository

from finding_tickets.cli import list as list_command
from finding_tickets.cli import main as main_module
from finding_tickets.cli.main import COMMANDS, run
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.ground import __version__

TICKETS = [sys.executable, "-m", "finding_tickets"]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], int]:
    """Run ``tickets list`` where reading the register raises."""

    def fail(error: BaseException) -> int:
        def raising(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(list_command, "load", raising)
        return run(["list"])

    return fail


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    """`tickets --version` names the tool and its version."""
    assert 0 == run(["--version"])
    assert f"tickets {__version__}\n" == capsys.readouterr().out


def test_help_names_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """`tickets --help` is where commands and exit codes are looked up."""
    assert 0 == run(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert [] == [name for name in COMMANDS if f" {name} " not in shown]
    codes = shown.partition("Exit codes: ")[2]
    assert {int(code) for code in ExitCode} == {
        int(part.split()[0]) for part in codes.rstrip(".").split(", ")
    }


def test_the_readme_lists_the_exit_codes_in_their_order() -> None:
    """Where several codes apply, the first of the README's table is the one that `tickets` ends with."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"^\| (\d+) \|", readme.partition("### Exit codes")[2].partition("\n## ")[0], re.MULTILINE
    )
    assert [int(code) for code in ExitCode] == [int(code) for code in listed]


def test_a_misspelt_command_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest command is named although only the one that runs is loaded."""
    run(["lst"])
    assert "Did you mean 'list'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["gone", "B1-PT-01"], "error: tickets gone is gone; use it no more\n"),
        (["list", "--old=3"], "error: tickets list --old is gone; use --new\n"),
        (["list", "--format", "dot"], "error: tickets list --format dot is gone; use csv\n"),
        (["list", "--format=dot"], "error: tickets list --format dot is gone; use csv\n"),
    ],
)
def test_a_removed_command_or_option_names_its_replacement(
    typed: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Who types what an older version had reads in one line what to do instead."""
    removed = {"gone": "use it no more", "list --old": "use --new", "list --format dot": "use csv"}
    monkeypatch.setattr(main_module, "REMOVED", removed)
    assert 2 == run(typed)
    assert ("", message) == capsys.readouterr()


def test_a_target_may_have_an_option_of_a_removed_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows -- is the target's own."""
    monkeypatch.setattr(main_module, "REMOVED", {"probe --old": "use --new"})
    main_module.check_removed(["probe", "train.py", "--", "--old"])
    with pytest.raises(UsageError, match="use --new"):
        main_module.check_removed(["probe", "--old", "train.py"])


def test_an_error_is_one_line_with_its_place(
    failing: Callable[[BaseException], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """File, line, message and hint, and the exit code of the error's kind."""
    assert 4 == failing(BadDataError("cannot be read", file="a.md", line=7, hint="save it"))
    assert "error: a.md:7: cannot be read (save it)\n" == capsys.readouterr().err


def test_an_interrupt_is_silent(
    failing: Callable[[BaseException], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C ends with 130 and no traceback."""
    assert 130 == failing(KeyboardInterrupt())
    assert ("", "") == capsys.readouterr()


def test_an_interrupt_while_it_loads_is_silent() -> None:
    """Who changes their mind at once is told nothing of the modules that are being imported."""
    code = """
import os, signal, sys
class Typer:
    def find_spec(self, name, path, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Typer())
from finding_tickets.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ExitCode.INTERRUPTED, "", "") == (done.returncode, done.stdout, done.stderr)


def test_a_bug_is_one_message_that_says_what_to_report(
    failing: Callable[[BaseException], int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An unexpected exception names itself and how to get its traceback, which TICKETS_DEBUG then shows."""
    assert 70 == failing(ZeroDivisionError("division\nby zero"))
    message = capsys.readouterr().err
    assert f"this is a bug in tickets {__version__}: ZeroDivisionError: division\n" in message
    assert "TICKETS_DEBUG=1" in message
    monkeypatch.setenv("TICKETS_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        failing(ZeroDivisionError())


def test_a_reader_that_goes_away_is_no_error(repository: Repository) -> None:
    """`tickets list | head -0` ends as if everything had been read, without a complaint."""
    repository.ticket()
    process = subprocess.Popen(
        [*TICKETS, "list", "--root", repository.root],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (0, "1 of 1 document\n") == (process.wait(), said)


def test_ids_complete_in_the_shell(repository: Repository) -> None:
    """What was typed, in any case, completes to the IDs of the register that --root names."""
    typed = "b1-pt"
    for ticket_id in ("B1-PT-01", "B1-PT-02", "B2-PT-01"):
        repository.ticket(ticket_id)
    words = f"tickets show --root {repository.root} {typed}"
    asked = {"_TICKETS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "4"}
    done = subprocess.run(TICKETS, capture_output=True, check=True, text=True, env=os.environ | asked)
    assert ["b1-pt-01", "b1-pt-02"] == done.stdout.lower().split()
    assert all(name.startswith(typed) for name in done.stdout.split())


def test_the_same_program_by_both_names(repository: Repository) -> None:
    """`python -m finding_tickets` is `tickets`."""
    repository.ticket()
    command = [str(Path(sys.executable).parent / "tickets"), "list", "--root", str(repository.root)]
    module = [*TICKETS, "list", "--root", str(repository.root)]
    outputs = [subprocess.run(line, capture_output=True, check=True).stdout for line in (command, module)]
    assert outputs[0] == outputs[1]
