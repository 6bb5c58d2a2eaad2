"""Tickets about a statement: other tickets of the same program and moved lines do not disturb them."""

from __future__ import annotations

from shutil import copytree, rmtree
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Ran
    from tests.conftest import Git, Repository

    Tickets = Callable[..., Ran]

# Lines 8 and 9 wait once in each of 10 steps, as does line 4, which line 9 calls.
NORM, LOSS = "    norm = xs[0].norm().item()\n", "    print(step, norm, read(xs[1]))\n"
TRAIN = f"""\
import torch

def read(x):
    return x.sum().item()

xs = [torch.ones(4, device="cuda"), torch.ones(4, device="cuda")]
for step in range(10):
{NORM}{LOSS}"""
TICKET = """\
- [ ] Nothing else waits

## Remediation

```yaml
run: train.py{arguments}
place: {{file: train.py, {place}}}
differs: [norm, output, step, read()]
variants: {{found: "@first"}}
claims:
  found: {{syncs: {found}}}
  fix: {{syncs: 0}}
  elsewhere: no new waits
checklist:
  - {{item: Count the waits, claims: [fix.syncs]}}
  - {{item: Nothing else waits, claims: [elsewhere]}}
```
"""
FIRST, SECOND = "B1-PT-01", "B1-PT-02"
PLACES = {FIRST: "code: 'norm = xs[0].norm().item()'", SECOND: "function: read, code: return x.sum().item()"}


@pytest.fixture
def pinned(repository: Repository, git: Git) -> Repository:
    """A script with a ticket for each of its two waits, committed with the tag ``first``."""
    repository.write("train.py", TRAIN)
    for name, place in PLACES.items():
        text = TICKET.format(arguments="", place=place, found=10)
        repository.ticket(name, status="open", more=text)
    git("add", ".")
    git("commit", "-qm", "first")
    git("tag", "first")
    return repository


def as_found(repository: Repository, git: Git, text: str) -> None:
    """Make a script the code as found of all tickets."""
    repository.write("train.py", text)
    git("commit", "-qam", "found")
    git("tag", "-f", "first")


def check(tickets: Tickets) -> tuple[int, list[str]]:
    """The exit code of the gate, and its errors."""
    done = tickets("check", "--base", "HEAD")
    return done.code, [line for line in done.out.splitlines() if " error " in line]


def verdicts(tickets: Tickets) -> dict[str, str]:
    """The verdict of each ticket from its evidence."""
    return {each["id"]: each["verdict"] for each in tickets("list", "--format", "json").data}


@pytest.mark.slow
def test_one_of_two_is_fixed(pinned: Repository, tickets: Tickets) -> None:
    """The other ticket is refused as long as its statement waits, and closes nothing."""
    pinned.write("train.py", TRAIN.replace(NORM, "    # norms are not needed\n    norm = 0\n"))
    done = tickets("fix", FIRST)
    assert (0, True) == (done.code, "syncs  10 -> 0" in done.out), done.err
    assert 0 == tickets("close", FIRST).code
    (item, _) = tickets("list", "--format", "json").data
    assert ("fixed", "verified", [True, True]) == (
        item["status"],
        item["verdict"],
        [each["done"] for each in item["checklist"]],
    )
    done = tickets("fix", SECOND)
    assert (1, True) == (done.code, "train.py:4 still waits 10 times" in done.err), done.err
    done = tickets("close", SECOND)
    assert (1, True) == (done.code, "stays open" in done.err), done.err
    assert "fix:" not in (pinned.root / f"tickets/{SECOND}.md").read_text().partition("claims:")[0]


# Neither fix waits in its loop. Each reads once at the end, where nothing waited.
FIXES = {
    SECOND: ("    return x.sum().item()\n", "    return x.shape\n", "print(xs[1].sum().item())\n"),
    FIRST: (NORM, "    norm = xs[0].norm()\n", "print(norm.item())\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("order", [(FIRST, SECOND), (SECOND, FIRST)])
def test_both_are_fixed_in_either_order(
    pinned: Repository, tickets: Tickets, git: Git, order: tuple[str, str]
) -> None:
    """Both are verified, and stay it: a wait that one of them names as moved is none against the other."""
    text = TRAIN.replace("print(step, norm, read(xs[1]))", "print(step, read(xs[1]))")
    for name in order:
        old, new, end = FIXES[name]
        text = text.replace(old, new) + end
        pinned.write("train.py", text)
        last = f"train.py:{text.count(chr(10))}"
        done = tickets("fix", name, "--moved", last)
        assert 0 == done.code, done.err
        git("add", ".")
        git("commit", "-qm", name)
    assert 0 == tickets("verify", *order).code
    assert dict.fromkeys(order, "verified") == verdicts(tickets)


@pytest.mark.slow
def test_one_read_takes_the_place_of_two(pinned: Repository, tickets: Tickets, git: Git) -> None:
    """It waits as often as the statement of the ticket did, and its function waits less in all."""
    two = "    total = x.sum().item()\n    return total + x.norm().item()\n"
    text = TRAIN.replace("    return x.sum().item()\n", two)
    as_found(pinned, git, text)
    place = "function: read, code: total = x.sum().item()"
    pinned.ticket(SECOND, status="open", more=TICKET.format(arguments="", place=place, found=10))
    one = "    return sum(torch.stack([x.sum(), x.norm()]).tolist())\n"
    pinned.write("train.py", text.replace(two, one))
    done = tickets("fix", SECOND, "--moved", "train.py:4")
    # 10 calls waited twice each.
    assert (0, True) == (done.code, "syncs  10 -> 0" in done.out), done.err
    # A read beside the one that is left is none in the place of both.
    pinned.write("train.py", text.replace("total = x.sum().item()", "total = float(x.sum())"))
    done = tickets("fix", SECOND, "--moved", "train.py:4")
    assert (1, True) == (done.code, "waits 10 times, not less than train.py:4, 10 times" in done.err), (
        done.err
    )


@pytest.mark.slow
def test_one_read_takes_the_place_of_two_in_a_loop(pinned: Repository, tickets: Tickets, git: Git) -> None:
    """At module level what waited in loops counts as well, and no wait of the set-up."""
    two = f"{NORM}    more = xs[1].norm().item()\n"
    text = TRAIN.replace("for step", "xs[0].max().item()\nfor step").replace(NORM, two)
    as_found(pinned, git, text)
    one = "    norm, more = torch.stack([x.norm() for x in xs]).tolist()\n"
    pinned.write("train.py", text.replace(two, one))
    # 10 steps waited twice each.
    done = tickets("fix", FIRST, "--moved", "train.py:9")
    assert (0, True) == (done.code, "syncs  10 -> 0" in done.out), done.err
    text = text.replace("xs[0].max().item()\n", "\n").replace(NORM, "    norm = float(xs[0].norm())\n")
    pinned.write("train.py", text)
    done = tickets("fix", FIRST, "--moved", "train.py:9")
    assert (1, True) == (done.code, "waits 10 times, not less than train.py:9, 10 times" in done.err), (
        done.err
    )


@pytest.mark.slow
def test_only_the_statements_named_count_for_what_is_moved(
    pinned: Repository, tickets: Tickets, git: Git
) -> None:
    """Another statement of the function, which waits less often or more often, says nothing of them."""
    total, norms = "    total = x.sum().item()\n", "    for _ in range(2):\n        x.norm().item()\n"
    text = TRAIN.replace("    return x.sum().item()\n", f"{total}{norms}    return total\n")
    as_found(pinned, git, text)
    place = "function: read, code: total = x.sum().item()"
    pinned.ticket(SECOND, status="open", more=TICKET.format(arguments="", place=place, found=10))
    # Norms wait 10 times where they waited 20 times, and the sum as often as before.
    pinned.write("train.py", text.replace("x.sum().item()", "float(x.sum())").replace("range(2)", "range(1)"))
    done = tickets("fix", SECOND, "--moved", "train.py:4")
    assert (1, True) == (done.code, "waits 10 times, not less than train.py:4, 10 times" in done.err), (
        done.err
    )
    # Norms wait 40 times, and the sum once.
    text = text.replace("x.sum().item()", "0").replace("range(2)", "range(4)")
    pinned.write("train.py", f"{text}print(xs[1].sum().item())\n")
    done = tickets("fix", SECOND, "--moved", "train.py:13")
    assert (0, True) == (done.code, "syncs  10 -> 0" in done.out), done.err


# Helpers are put in front of line 6: what stood at line 8 stands at line 13 then.
HELPER = "from threading import Thread\n\ndef helper(x):\n    return float(x)\n\n"
MOVED = {
    "an f-string": ('    norm = f"{xs[0].norm()}"\n', "13"),
    "a statement that waits": ("    norm = xs[0].norm()\n", "14"),
    "a helper": ("    norm = helper(xs[0].norm())\n", "9 in helper()"),
    "a helper that waits": ("    norm = read(xs[0].norm())\n", "4 in read(), 20 times, 10 times before"),
    "a callback": ("    norm = list(map(lambda x: x.norm().item(), xs[:1]))\n", "13"),
    "a loop that polls": (
        "    norm, event = 0, torch.cuda.Event()\n    event.record()\n    while not event.query(): pass\n",
        "15",
    ),
    "a thread": ("    norm = Thread(target=lambda: xs[0].norm().item())\n    norm.start()\n", "13"),
}


@pytest.mark.parametrize(
    "where",
    [each if each == "a helper" else pytest.param(each, marks=pytest.mark.slow) for each in MOVED],
)
def test_a_wait_that_is_moved_is_no_fix(pinned: Repository, tickets: Tickets, where: str) -> None:
    """It is refused at its new line."""
    new, line = MOVED[where]
    pinned.write("train.py", TRAIN.replace(NORM, new).replace("xs = ", f"{HELPER}xs = "))
    done = tickets("fix", FIRST)
    assert (1, True) == (done.code, f"a new wait at train.py:{line}" in done.err), done.err + done.out
    assert f"--moved train.py:{line.split()[0]}" in done.err


def test_a_race_in_the_place_of_a_wait_is_no_fix(pinned: Repository, tickets: Tickets) -> None:
    """It is refused with the line that reads too early, and the one of the copy that it reads."""
    copy = "host = torch.empty((), pin_memory=True).copy_(xs[0].norm(), non_blocking=True)"
    pinned.write("train.py", TRAIN.replace(NORM, f"    {copy}\n    norm = host.tolist()\n"))
    done = tickets("fix", FIRST)
    said = "a new race at train.py:9, 10 times: norm = host.tolist(), not ordered after train.py:8: "
    assert (1, True) == (done.code, f"{said}{copy}" in " ".join(done.err.split())), done.err
    # That it is moved would be no excuse.
    assert (True, False) == ("wait for the copy" in done.err, "--moved" in done.err), done.err


FIXED = TRAIN.replace(NORM, "    norm = 0\n")


NO_NEW_WAITS = {
    "moved lines and other names": f"# A comment.\n{FIXED}".replace("x.", "y.").replace("(x)", "(y)"),
    "more steps, and other code around what waits": FIXED.replace("range(10)", "range(20)").replace(
        "return x.sum().item()", "return 2 * x.sum().item()"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", NO_NEW_WAITS)
def test_what_is_no_new_wait(pinned: Repository, tickets: Tickets, what: str) -> None:
    """Line 4 waits as before, or more often by the same calls."""
    pinned.write("train.py", NO_NEW_WAITS[what])
    assert 0 == tickets("fix", FIRST).code


@pytest.mark.slow
def test_more_steps_are_no_new_wait_where_a_line_does_more_in_them(
    pinned: Repository, tickets: Tickets, git: Git
) -> None:
    """What is read is copied from the tenth step on, because it is transposed there."""
    text = TRAIN.replace("x.sum()", "x.reshape(-1).sum()").replace(
        "xs[1])", "xs[1] if step < 10 else turned)"
    )
    text = text.replace("for step", 'turned = torch.ones(4, 4, device="cuda").t()\nfor step')
    as_found(pinned, git, text)
    pinned.write("train.py", text.replace(NORM, "    norm = 0\n").replace("range(10)", "range(20)"))
    done = tickets("fix", FIRST)
    assert 0 == done.code, done.err


@pytest.mark.slow
def test_a_fix_that_may_block_says_so(pinned: Repository, tickets: Tickets) -> None:
    """It decides nothing: an allocation may block in both, and 10 copies of unpinned memory in the fix."""
    copy = "    torch.ones(4).to('cuda', non_blocking=True)\n    norm = 0\n"
    pinned.write("train.py", TRAIN.replace(NORM, copy))
    done = tickets("fix", FIRST)
    said = "every claim about found and fix holds; costs more otherwise: implicit_syncs 1 -> 11, "
    assert (0, True) == (done.code, said in done.out), done.out + done.err


@pytest.mark.slow
def test_a_part_of_a_modelled_number(pinned: Repository, tickets: Tickets) -> None:
    """Sparse tensors wait as often as is known or more, and so does each statement of their program."""
    sparse = "torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,), device='cuda').coalesce()\n"
    pinned.write("train.py", TRAIN + sparse)
    block = TICKET.format(arguments="", place=PLACES[FIRST], found='">= 10"').replace("@first", "@worktree")
    pinned.ticket(FIRST, status="open", more=block)
    (item,) = tickets("verify", FIRST, "--format", "json").data
    assert ("reproduced", "~10 (10 or more)") == (item["verdict"], item["claims"][0]["measured"])
    assert "modelled" not in item["reason"]


@pytest.mark.slow
def test_a_law_of_the_statement(pinned: Repository, tickets: Tickets) -> None:
    """What the rest of the program waits is not part of it; the fix waits no more at any point."""
    arguments = " {steps} {others}\nsweep: {steps: [1, 2, 4], others: [3, 5]}"
    sweep = TRAIN.replace("range(10)", "range(int(sys.argv[1]))").replace("import torch", "import sys, torch")
    text = f"{sweep}for _ in range(int(sys.argv[2])):\n    read(xs[0])\n"
    pinned.write("train.py", text)
    block = TICKET.format(arguments=arguments, place=PLACES[FIRST], found="steps")
    pinned.ticket(FIRST, status="open", more=block.replace("@first", "@worktree"))
    done = tickets("verify", FIRST, "--format", "json")
    assert (0, "steps") == (done.code, done.data[0]["variants"]["found"]["laws"]["syncs"]), done.err


NOT_FOUND = {
    "no longer there": ("code: gone()", "train.py has no such statement at first: gone()"),
    "in another function": (
        "code: return x.sum().item()",
        "it stands at train.py:4 in read; correct place, or pin found",
    ),
    "twice": (
        "code: torch.ones(1)",
        "train.py has this statement 2 times, at lines 10, 11 (say which one: occurrence: 1 to 2)",
    ),
}


@pytest.mark.parametrize("why", NOT_FOUND)
def test_a_place_that_is_not_found(pinned: Repository, tickets: Tickets, git: Git, why: str) -> None:
    """Bad data at a line of the ticket, with what to do; nothing runs."""
    as_found(pinned, git, f"{TRAIN}torch.ones(1)\ntorch.ones(1)\n")
    place, message = NOT_FOUND[why]
    pinned.ticket(FIRST, status="open", more=TICKET.format(arguments="", place=place, found=10))
    done = tickets("verify", FIRST)
    assert (4, True) == (done.code, message in done.err), done.err
    # The block begins below 30 lines of the ticket.
    assert f"tickets/{FIRST}.md:34: place: " in done.err


def test_a_commit_that_is_gone(pinned: Repository, tickets: Tickets) -> None:
    """Nothing can be measured, and the reason names the line of the ticket."""
    text = TICKET.format(arguments="", place=PLACES[FIRST], found=10).replace("@first", "@0123456789ab")
    pinned.ticket(FIRST, status="open", more=text)
    done = tickets("verify", FIRST)
    assert (3, True) == (
        done.code,
        f"pin found to one that has the statement (tickets/{FIRST}.md:33)" in done.out,
    ), done.out + done.err


def test_two_tickets_of_one_place(
    pinned: Repository, tickets: Tickets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later one is named at its line, and none is drafted, with what to do."""
    text = TICKET.format(arguments="", place=PLACES[FIRST], found=10)
    pinned.ticket("B1-PT-03", status="open", more=text)
    (problem,) = [each for each in tickets("lint", "--format", "json").data if each["rule"] == "same-place"]
    assert ("tickets/B1-PT-03.md", 34, f"{FIRST} is about this statement, too") == (
        problem["file"],
        problem["line"],
        problem["message"],
    )
    assert f"tickets close B1-PT-03 --as duplicate --of {FIRST}" == problem["hint"]
    monkeypatch.chdir(pinned.root)
    done = tickets("probe", "train.py", "--draft", "train.py:8")
    # Its block begins in line 32, above `run` and `place`.
    said = (
        f"tickets/{FIRST}.md:32: {FIRST} is about this statement already, train.py:8 (tickets show {FIRST})"
    )
    assert (2, True) == (done.code, said in done.err), done.err


COPIES = """\
hosts = [torch.ones(4), *(torch.ones(4).pin_memory() for _ in range(2))]
for host in hosts:
    host.to("cuda", non_blocking=True)
"""
"""One of three copies is of unpinned memory."""
LIBRARY = f"{TRAIN}{COPIES}".replace("import torch", "import torch\nfrom vendor import library")
CLOSED = LIBRARY.replace(NORM, "    norm = 0\n").replace("\n\ndef read", "\ndef read")
WORSE = "error [gate-worse] B1-PT-01:"
LATER = {
    "other words, and one more layer": (
        CLOSED.replace("import torch", "import torch  # The device.")
        .replace("def read(x)", "def read(x, scale=1)")
        .replace("for step", "xs.append(torch.ones(4, device='cuda'))\nfor step")
        .replace("xs", "tensors"),
        "",
    ),
    "one wait fewer": (CLOSED.replace("print(step, norm, read(xs[1]))", "print(step, norm)"), ""),
    "put back": (
        CLOSED.replace("    norm = 0\n", NORM),
        f"train.py:8: {WORSE} train.py:8 again waits 10 times",
    ),
    "in the same statement": (
        CLOSED.replace("norm = 0", "norm = 0 * xs[0].norm().item()"),
        f"train.py:8: {WORSE} a new wait at train.py:8, 10 times: norm = 0 * xs[0]",
    ),
    "in a new helper": (
        CLOSED.replace("def read", "def helper(x):\n    return x.norm().item()\ndef read").replace(
            "norm = 0", "norm = helper(xs[0])"
        ),
        f"train.py:4: {WORSE} a new wait at train.py:4 in helper(), 10 times: ",
    ),
    "in a library that is called anew": (
        CLOSED.replace("norm = 0", "norm = library.norm(xs[0])"),
        f"train.py:8: {WORSE} a new wait at train.py:8, 10 times: norm = library",
    ),
    "unpinned memory": (
        CLOSED.replace(".pin_memory()", ""),
        f"train.py:12: {WORSE} copies of unpinned memory may wait at train.py:12",
    ),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the first test leaves a copy of ``closed``, which takes long to make."""
    return tmp_path_factory.mktemp("template") / "repository"


@pytest.fixture
def closed(pinned: Repository, tickets: Tickets, git: Git, template: Path) -> Repository:
    """The script, which may call a library, with its first wait fixed, and that ticket closed."""
    if template.exists():
        rmtree(pinned.root)
        copytree(template, pinned.root)
        return pinned
    pinned.write("vendor/library.py", "def norm(x):\n    return x.norm().item()\n")
    pinned.write("train.py", LIBRARY)
    git("add", ".")
    git("commit", "-qm", "library")
    git("tag", "-f", "first")
    pinned.write("train.py", CLOSED)
    assert [0, 0] == [tickets(command, FIRST).code for command in ("fix", "close")]
    git("commit", "-qam", "fixed")
    copytree(pinned.root, template)
    return pinned


@pytest.mark.slow
@pytest.mark.parametrize("what", LATER)
def test_the_gate_of_what_is_run(closed: Repository, tickets: Tickets, what: str) -> None:
    """An honest branch is silent but for notes, and a wait that is put back is one message at its line."""
    program, said = LATER[what]
    closed.write("train.py", program)
    code, errors = check(tickets)
    assert ((1, [True]) if said else (0, [])) == (code, [each.startswith(said) for each in errors]), errors


@pytest.mark.slow
def test_the_gate_names_the_line_once(pinned: Repository, tickets: Tickets, git: Git) -> None:
    """Of a statement that waits again, whichever other ticket is closed."""
    fixed = TRAIN.replace(NORM, "    norm = 0\n")
    pinned.write("train.py", fixed)
    assert 0 == tickets("fix", FIRST).code
    pinned.write("train.py", fixed.replace("x.sum().item()", "x.shape"))
    assert 0 == tickets("fix", SECOND).code
    assert [0, 0] == [tickets("close", name).code for name in PLACES]
    git("add", ".")
    git("commit", "-qm", "fixed")
    pinned.write("train.py", TRAIN.replace("x.sum().item()", "x.shape").replace("import", "# No.\nimport"))
    code, (error,) = check(tickets)
    said = f"train.py:9: error [gate-worse] {FIRST}: train.py:9 again waits 10 times"
    assert (1, True) == (code, said in error), error
    # A wait that the base has is none of the branch. One that the branch adds is new to both.
    both = fixed.replace("x.sum().item()", "x.shape")
    pinned.write("train.py", f"{both}    float(xs[0].norm())\n")
    git("commit", "-qam", "a wait in each step")
    pinned.write("train.py", f"{both}    float(xs[0].norm())\n    float(xs[1].norm())\n")
    done = tickets("check", "--base", "HEAD")
    (error,) = [line for line in done.out.splitlines() if " error " in line]
    assert f"train.py:11: error [gate-worse] {FIRST}: a new wait at train.py:11" in error
    assert f"{FIRST}: its evidence is out of date, and that of {SECOND}" in done.out
    # A race is told once as well.
    copy = "    host = torch.empty((), pin_memory=True).copy_(xs[0].norm(), non_blocking=True)\n"
    pinned.write("train.py", f"{both}    float(xs[0].norm())\n{copy}    host.tolist()\n")
    code, (error,) = check(tickets)
    assert (1, True) == (code, "a new race at train.py:12, 10 times: host.tolist(), not" in error), error


@pytest.mark.slow
def test_a_wait_that_went_without_a_ticket_is_new_when_it_is_back(
    pinned: Repository, tickets: Tickets, git: Git
) -> None:
    """The code as found of another ticket had it, and the base has not."""
    (pinned.root / f"tickets/{SECOND}.md").unlink()
    pinned.write("train.py", FIXED)
    assert [0, 0] == [tickets(command, FIRST).code for command in ("fix", "close")]
    pinned.write("train.py", FIXED.replace("x.sum().item()", "x.shape"))
    git("add", "--all")
    git("commit", "-qm", "fixed")
    pinned.write("train.py", f"# No.\n{FIXED}".replace("x.sum().item()", "x.shape"))
    assert (0, []) == check(tickets)
    pinned.write("train.py", f"# No.\n{FIXED}")
    code, (error,) = check(tickets)
    said = f"train.py:5: error [gate-worse] {FIRST}: a new wait at train.py:5 in read(), 10 times: "
    assert (1, True) == (code, error.startswith(said)), error
    # Of two lines that wait again, each has a message of its own.
    pinned.write("train.py", TRAIN)
    code, errors = check(tickets)
    assert (1, ["train.py:4", "train.py:8"]) == (code, sorted(each.partition(": ")[0] for each in errors))


@pytest.mark.slow
def test_code_goes_on_after_a_ticket_is_closed(pinned: Repository, tickets: Tickets, git: Git) -> None:
    """A branch that brings a new wait is refused. Once it is there, one rarer than its own fails nothing."""
    later = f"{FIXED}print(float(xs[0].norm()))\n"
    pinned.write("train.py", later)
    done = tickets("fix", FIRST)
    assert (1, True) == (done.code, "a new wait at train.py:10, once" in done.err), done.err
    pinned.write("train.py", FIXED)
    assert [0, 0] == [tickets(command, FIRST).code for command in ("fix", "close")]
    git("commit", "-qam", "fixed")
    pinned.write("train.py", later)
    done = tickets("check", "--base", "HEAD")
    assert (1, True) == (done.code, "train.py:10: error [gate-worse]" in done.out), done.out
    # One that waits less than what went is accepted as the message says.
    assert f"tickets fix {FIRST} --moved train.py:10, and --accept {FIRST}" in done.out
    assert 0 == tickets("fix", FIRST, "--moved", "train.py:10").code
    assert 0 == tickets("check", "--base", "HEAD", "--accept", FIRST).code
    git("checkout", "tickets")
    git("commit", "-qam", "later")
    pinned.write("train.py", f"# The first norm is printed.\n{later}")
    assert (0, []) == check(tickets)
    # One that is as frequent is the ticket's own, put back.
    pinned.write("train.py", FIXED.replace("norm = 0", "norm = float(xs[0].norm())"))
    done = tickets("verify", FIRST)
    assert (1, True) == (done.code, "claimed no new waits; measured train.py:8" in done.out), done.out


@pytest.mark.slow
def test_what_was_moved_may_have_more_to_do(pinned: Repository, tickets: Tickets, git: Git) -> None:
    """It may wait as often as once the place did if the steps are more, but not because it is in a loop."""
    pair, one = "    return [each.item() for each in x[:2]]\n", "    pair = x[:2].tolist()\n"
    text = TRAIN.replace("    return x.sum().item()\n", pair)
    fixed = text.replace(pair, f"{one}    return pair\n")
    as_found(pinned, git, text)
    # In ten steps each of two numbers is read, then both at once.
    place = f"function: read, code: '{pair.strip()}'"
    pinned.ticket(SECOND, status="open", more=TICKET.format(arguments="", place=place, found=20))
    pinned.write("train.py", fixed)
    assert 0 == tickets("fix", SECOND, "--moved", "train.py:4").code
    assert 0 == tickets("close", SECOND).code
    assert "10 moved to train.py:4" in tickets("report", "--format", "html").out
    git("commit", "-qam", "fixed")
    pinned.write("train.py", fixed.replace("range(10)", "range(20)"))
    assert [0, 0] == [tickets(*words).code for words in (("check", "--base", "HEAD"), ("verify", SECOND))]
    # Nor is the same read a new wait because it is written in another way.
    pinned.write("train.py", fixed.replace(one, "    halves = x[:2]\n    pair = halves.cpu().tolist()\n"))
    assert (0, []) == check(tickets)
    pinned.write("train.py", fixed.replace(one, f"    for _ in range(2):\n    {one}"))
    code, (error,) = check(tickets)
    said = "what moved names waits 20 times, not less than train.py:4, 20 times"
    assert (1, True) == (code, said in error), error


@pytest.mark.slow
def test_a_wait_that_is_moved_out_of_what_is_counted(pinned: Repository, tickets: Tickets) -> None:
    """Calls of one function are counted, and the fix waits where that is called."""
    text = TICKET.format(arguments="\nwithin: 'train.py:read'", place=PLACES[SECOND], found=1)
    pinned.ticket(SECOND, status="open", more=text)
    pinned.write("train.py", TRAIN.replace("x.sum().item()", "x.sum()"))
    done = tickets("fix", SECOND)
    assert (1, True) == (done.code, "a new wait at train.py:9" in done.err), done.err + done.out
