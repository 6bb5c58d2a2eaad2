"""`show` and `verify` on a terminal: what is seen, what never is, and what is left behind."""

from __future__ import annotations

import re
import sys

import pytest
from pyte import Screen
from tests.conftest import Repository
from tests.terminal import CTRL_C, ROWS, Key, Shown, no_key, show
from tests.verify.conftest import CLAIMS, FOUND, MORE_POINTS, add

from finding_tickets.cli.main import run
from finding_tickets.errors import ExitCode

ESCAPE = re.compile(rb"\x1b\[([0-9;?]*)([A-Za-z])")
EXPECTED = CLAIMS.replace("syncs: 1", "syncs: [1, {is: 0, expect: refuted, why: 'one read is needed'}]")
HANGS = "import time\nprint('begun')\ntime.sleep(600)\n"


def tickets(
    repository: Repository,
    *arguments: str,
    columns: int = 100,
    environment: dict[str, str] | None = None,
    key: Key = no_key,
) -> Shown:
    """A command line on a terminal, in the repository."""
    line = [sys.executable, "-m", "finding_tickets", *arguments, "--root", str(repository.root)]
    return show(line, columns=columns, environment=environment, key=key)


@pytest.mark.slow
def test_a_report_is_half_a_screen(repository: Repository) -> None:
    """On a terminal: counts and what to do next with the command that lists it; a format has the page."""
    for number in range(200):
        repository.ticket(f"A-{number}", severity=f"P{number % 4}", status="open")
    shown = tickets(repository, "report", columns=80)
    assert ExitCode.OK == shown.code
    assert len(shown.lines) <= 12
    # 200 tickets of four severities in turn: 0, 4, 8 and so on are the worst.
    for line in (
        "  severity: 50 P0, 50 P1, 50 P2, 50 P3",
        "Next",
        "  200  fix it, or decide to keep the code as it is: A-0, A-4, A-8",
        "    tickets list 'verdict:unverified no:verifier status:open'",
    ):
        assert line in shown.lines
    assert "| A-199 | P3 |" in "\n".join(tickets(repository, "report", "--format", "markdown").seen)


def styles(shown: Shown) -> list[bytes]:
    """The styles that were sent to a terminal, colours among them."""
    return [code for code, kind in ESCAPE.findall(shown.sent) if kind == b"m"]


@pytest.mark.slow
def test_a_verification_is_shown_from_verdict_to_lines(repository: Repository) -> None:
    """Before and after, the line that waits with its source, and where a claim fails."""
    add(repository, "A-1", claims=EXPECTED, verifier=MORE_POINTS.format(ticket="A-1"))
    brief = tickets(repository, "verify", "A-1", columns=123)
    assert ExitCode.OK == brief.code
    # Two lines of progress come before.
    assert "A-1  failed: 1 of 3 claims about fix is false" == brief.lines[2]
    code = FOUND.split("\n")[4].strip()
    # The longest code ends where the terminal does: 123 columns.
    code_of_fix = "return torch.stack([tensor.sum() for tensor in tensors]).double().sum().i…"
    measured = "measured 1 at tensors=1, size=7 and at 5 more points (as expected: one read is needed)"
    assert [
        "syncs tensors -> 1",
        f"found fixes/a_1/found.py:5 syncs: tensors {code}",
        f"fix fixes/a_1/fix.py:6 syncs: 1 {code_of_fix}",
        "4 claims: 3 hold, 1 is false as expected (-v lists them)",
        # At each of the six points, there is one sync where none is claimed.
        f"false fix.syncs[1]: claimed 0; {measured}",
    ] == [" ".join(line.split()) for line in brief.lines[4:]]


@pytest.mark.slow
def test_a_pager_takes_over_where_a_page_is_longer_than_the_terminal(repository: Repository) -> None:
    """What is longer than the terminal goes through the user's pager, what fits or is JSON does not."""
    repository.ticket("A-1", more="line\n\n" * ROWS)
    repository.ticket("B-1")
    pager = {"PAGER": "sed s/line/paged/", "MANPAGER": "false"}
    for arguments, paged in {("A-1",): True, ("B-1",): False, ("A-1", "--format", "json"): False}.items():
        shown = tickets(repository, "show", *arguments, environment=pager)
        assert (ExitCode.OK, paged) == (shown.code, b"paged" in shown.sent)


@pytest.mark.slow
def test_without_colours_nothing_but_text_is_printed(repository: Repository) -> None:
    """With NO_COLOR what stays on a terminal has no style at all; a dumb terminal gets the plain form."""
    add(repository, "A-1")
    run(["verify", "A-1", "--root", str(repository.root)])
    plain = tickets(repository, "show", "A-1", environment={"NO_COLOR": "1"})
    assert [] == styles(plain)
    dumb = tickets(repository, "show", "A-1", environment={"TERM": "dumb"})
    assert b"\x1b" not in dumb.sent


@pytest.mark.slow
def test_an_interrupt_leaves_a_clean_terminal(repository: Repository) -> None:
    """Ctrl-C while a ticket hangs: its code, no traceback, and always a cursor."""
    add(repository, "A-1", verifier=HANGS)
    hidden: list[bool] = []

    def interrupt(screen: Screen) -> bytes:
        if not any("measuring A-1" in line for line in screen.display):
            return b""
        hidden.append(screen.cursor.hidden)
        return CTRL_C

    shown = tickets(repository, "verify", "A-1", key=interrupt)
    assert ExitCode.INTERRUPTED == shown.code
    assert "measuring A-1" == shown.lines[0]
    assert "Traceback" not in "".join(shown.lines)
    assert [False, False] == [*hidden, shown.screen.cursor.hidden]


def test_code_is_shown_as_it_was_measured(repository: Repository) -> None:
    """Where the code has changed since, lines have the text that was measured, and the verdict is stale."""
    add(repository, "A-1")
    assert ExitCode.OK == run(["verify", "A-1", "--root", str(repository.root)])
    code = FOUND.split("\n")[4].strip()
    repository.write("fixes/a_1/found.py", FOUND.replace(code, "total += 0"))
    stale = tickets(repository, "show", "A-1").lines
    assert [line for line in stale if code in line]
    assert [] == [line for line in stale if "total += 0" in line]
    assert [line for line in stale if "stale (changed since" in line]
