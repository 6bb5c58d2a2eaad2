"""A fix that does less, or something else, is refused; it is named what differs from the code as found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Git, Repository
from tests.verify.conftest import FIX, FOUND, VERIFIER

NORMS = "    norms = [parameter.grad.norm().item() for parameter in model.parameters()]\n"
TOGETHER = "    norms = torch.stack([parameter.grad.norm() for parameter in model.parameters()])\n"
STEP = "    optimizer.step()\n"
TRAINER = f"""\
import torch

model = torch.nn.Linear(8, 4, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    model(torch.ones(2, 8, device="cuda")).square().mean().backward()
{NORMS}{STEP}    optimizer.zero_grad()
print("norms", *norms)
"""
# Two parameters are read in each of three steps, or all of them at once in the end.
FIXED = TRAINER.replace(NORMS, TOGETHER).replace("*norms", "*norms.tolist()")
RACE = f"""\
{TOGETHER}    host = torch.empty(2, pin_memory=True).copy_(norms, non_blocking=True)
    norms = host.tolist()
"""
BLOCK = """\
## Remediation

```yaml
run: train.py
variants: {found: "@first"}
claims: {found: {syncs: 6}}
```
"""


ANSWER = "checklist: [{item: The result is the same, claims: [fix.result]}]"


@pytest.fixture
def committed(repository: Repository, git: Git) -> Callable[[str], None]:
    """Commits a program with a ticket of its wait."""

    def commit(program: str, block: str = BLOCK) -> None:
        repository.write("train.py", program)
        repository.ticket(status="open", more=f"## Verification\n\n- [ ] The result is the same\n\n{block}")
        git("add", ".")
        git("commit", "-qm", "first")
        git("tag", "first")

    return commit


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        # The work is deleted with the wait.
        (TRAINER.replace(NORMS, "").replace("*norms", ""), "norms: missing"),
        (
            TRAINER.replace(NORMS, RACE),
            "at train.py:9: norms = host.tolist(), not ordered after train.py:8: host = torch.empty(2, ",
        ),
        pytest.param(
            FIXED + "print('done')\n",
            "output: 2 instead of 1 lines, first 'done' instead of nothing at line 2",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["deleted", "race", "more output"],
)
def test_a_fix_that_does_something_else_is_refused(
    committed: Callable[[str], None], repository: Repository, tickets: Tickets, now: str, reason: str
) -> None:
    """By `fix`, which writes nothing, and names what differs with its first value."""
    committed(TRAINER)
    before = (repository.root / "tickets/B1-PT-01.md").read_bytes()
    repository.write("train.py", now)
    done = tickets("fix", "B1-PT-01")
    assert (1, True) == (done.code, reason in done.err), done.err
    assert before == (repository.root / "tickets/B1-PT-01.md").read_bytes()


@pytest.mark.slow
def test_a_ticket_whose_fix_does_less_stays_open(
    committed: Callable[..., None], repository: Repository, tickets: Tickets
) -> None:
    """Closing measures, and says what differs."""
    committed(TRAINER, BLOCK.replace('"@first"', '"@first", fix: "@worktree"'))
    repository.write("train.py", FIXED.replace(STEP, ""))
    done = tickets("close", "B1-PT-01")
    assert (1, True) == (
        done.code,
        "failed: the result differs: model['weight']: 32 of 32 elements differ, " in done.err,
    ), done.err
    (item,) = tickets("list", "--format", "json").data
    assert ("open", "failed") == (item["status"], item["verdict"])


def test_a_fix_with_the_same_result_is_closed(
    committed: Callable[..., None], repository: Repository, tickets: Tickets
) -> None:
    """Numbers that are tensors now are compared by their values, and a variable may have a new name."""
    # A member of an enum is a number as well.
    modes = "import enum\n\nMode = enum.IntEnum('Mode', 'FAST')\nmode, costs = Mode.FAST, {Mode.FAST: 1.5}\n"
    committed(modes + TRAINER, BLOCK.replace("claims:", f"{ANSWER}\nclaims:"))
    repository.write("train.py", modes + FIXED.replace("optimizer", "descent"))
    done = tickets("fix", "B1-PT-01")
    assert (0, True) == (done.code, "verified: every claim about found and fix holds\n" in done.out), done
    (item,) = tickets("show", "B1-PT-01", "--format", "json").data
    claims = {claim["id"]: claim["measured"] for claim in item["verification"]["claims"]}
    assert {"found.syncs": "6", "fix.syncs": "1", "fix.result": "equal at 1 of 1 points"} == claims
    assert 0 == tickets("close", "B1-PT-01").code
    (item,) = tickets("show", "B1-PT-01", "--format", "json").data
    assert {"Count the waits": False, "The result is the same": True} == {
        each["text"]: each["done"] for each in item["checklist"]
    }


@pytest.mark.slow
def test_a_closed_ticket_keeps_that_its_result_was_compared(
    committed: Callable[..., None], repository: Repository, tickets: Tickets
) -> None:
    """Its evidence stays as it is while the code does; a result that is another one later fails nothing."""
    committed(TRAINER)
    repository.write("train.py", FIXED)
    assert [0, 0] == [tickets(command, "B1-PT-01").code for command in ("fix", "close")]
    (evidence,) = (repository.root / "evidence").rglob("*.json")
    recorded = evidence.read_bytes()
    assert b"fix.result" in recorded
    assert 0 == tickets("verify", "B1-PT-01").code
    assert recorded == evidence.read_bytes()
    repository.write("train.py", FIXED.replace("lr=0.1", "lr=0.2"))
    done = tickets("verify", "B1-PT-01")
    said = " ".join(done.out.split())
    assert (0, True) == (done.code, "claim about found and fix holds; by now the result differs: " in said), (
        said
    )
    (item,) = tickets("list", "--format", "json").data
    assert ("fixed", "verified") == (item["status"], item["verdict"])


@pytest.mark.slow
def test_a_difference_is_accepted_by_its_name(
    committed: Callable[..., None], repository: Repository, tickets: Tickets
) -> None:
    """The others still count; what is left out is said."""
    accepting = BLOCK.replace("claims:", f"{ANSWER}\ndiffers: [norms, output]\nclaims:")
    committed(TRAINER, accepting)
    constant = TRAINER.replace(NORMS, "    norms = [0.5, 0.5]\n")
    repository.write("train.py", constant.replace(STEP, ""))
    done = tickets("fix", "B1-PT-01")
    assert (1, True, False) == (done.code, "differs: model['weight']" in done.err, "norms" in done.err)
    repository.write("train.py", constant)
    done = tickets("fix", "B1-PT-01")
    assert 0 == done.code, done.err
    said = tickets("verify", "B1-PT-01", "-v").out
    assert "equal at 1 of 1 points, without norms; some numbers of printed lines" in " ".join(said.split())
    # What may differ is for people to look at.
    assert (
        "not ticked, for no claim answers it: tickets tick B1-PT-01 1 2" in tickets("close", "B1-PT-01").err
    )


@pytest.mark.slow
def test_work_that_is_deleted_in_a_function_is_missed(
    committed: Callable[..., None], repository: Repository, tickets: Tickets
) -> None:
    """Nothing else uses its variable. One that a new variable replaces is no loss, nor that of a loop."""
    main = DRAWN.replace("        print(part.item())", "        values.append(part.item())").replace(
        "    draw =", "    values = []\n    draw ="
    )
    committed(main, BLOCK.replace("syncs: 6", "syncs: 4"))
    loop = "    for part in noise:\n        values.append(part.item())\n"
    repository.write("train.py", main.replace("    values = []\n", "").replace(loop, ""))
    done = tickets("fix", "B1-PT-01")
    assert (1, True) == (done.code, "the result differs: main.values: missing" in done.err), done.err
    others = main.replace("    values = []\n", "").replace(loop, "    read = noise.tolist()\n")
    repository.write("train.py", others)
    assert 0 == tickets("fix", "B1-PT-01").code


OBJECTS = """\
import torch
from types import SimpleNamespace


class Meter:
    __slots__ = ("total", "_last")

    def __init__(self):
        self.total = 0.0


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.calls = torch.nn.Linear(4, 4), 0

    def forward(self, x):
        self.calls += 1
        return self.linear(x)


class Trainer:
    steps = 0

    def __init__(self):
        self.model = torch.nn.Sequential(Block()).to("cuda")
        self.running, self.state, self.meters = 0.0, SimpleNamespace(seen=0), {"loss": Meter()}
        self.me = self

    def step(self, x):
        loss = self.model(x).sum().item()
        self.running += loss
        self.meters["loss"].total += loss
        self.state.seen += 1
        Trainer.steps += 1


def run():
    trainer = Trainer()
    for _ in range(3):
        trainer.step(torch.ones(4, device="cuda"))


@torch.enable_grad()
def main():
    run()


main()
"""
KEPT_ON_DEVICE = OBJECTS.replace(".sum().item()", ".sum().detach()")


# Three are named, and that there are more: each of these is made at once.
DELETED = (
    {
        "self.running += loss": "run().trainer.running: 0.0 instead of ",
        "self.calls += 1": "run().trainer.model.0.calls: 0 instead of 3",
        "Trainer.steps += 1": "Trainer.steps: 0 instead of 3",
    },
    {
        'self.meters["loss"].total += loss': "run().trainer.meters['loss'].total: 0.0 instead of ",
        "self.state.seen += 1": "run().trainer.state.seen: 0 instead of 3",
    },
)


def test_attributes_of_own_objects_are_compared(
    committed: Callable[..., None], repository: Repository, tickets: Tickets
) -> None:
    """Those of a function of main, which a library calls: also of objects in others, modules, classes."""
    # Each of three steps waits once, and `to` for both parameters.
    committed(OBJECTS, BLOCK.replace("syncs: 6", "syncs: 5"))
    for reasons in DELETED:
        text = KEPT_ON_DEVICE
        for gone in reasons:
            text = text.replace(gone, "pass")
        repository.write("train.py", text)
        done = tickets("fix", "B1-PT-01")
        said = {reason for reason in reasons.values() if reason in done.err}
        assert (1, {*reasons.values()}) == (done.code, said), done.err
    repository.write("train.py", KEPT_ON_DEVICE)
    assert 0 == tickets("fix", "B1-PT-01").code


SUMMED = """\
import torch


def total(xs):
    found = 0.0
    for x in xs:
        found += x.item()
    return found


total(torch.ones(6, device="cuda"))
"""


@pytest.mark.slow
def test_a_function_that_returns_a_value_is_compared_by_it(
    committed: Callable[..., None], repository: Repository, tickets: Tickets
) -> None:
    """The fix needs no variable of its own; what it returns may be a tensor now, of the same value."""
    committed(SUMMED)
    for returned, code in (("xs[1:].sum()", 1), ("xs.sum()", 0)):
        fixed = SUMMED.replace("    found = 0.0\n", "").replace("found += x.item()", "pass")
        repository.write("train.py", fixed.replace("return found", f"return {returned}"))
        done = tickets("fix", "B1-PT-01")
        assert (code, code == 1) == (done.code, "total(): 5.0 instead of 6.0" in done.err), done.err


@pytest.mark.slow
def test_calls_of_a_function_are_counted_and_the_program_is_compared(
    committed: Callable[..., None], repository: Repository, tickets: Tickets
) -> None:
    """With `within`, too: what else the program left behind must be as it was."""
    function = "def read(model):\n    return [each.grad.norm().item() for each in model.parameters()]\n\n\n"
    program = TRAINER.replace("model = ", f"{function}model = ").replace(NORMS, "    norms = read(model)\n")
    committed(
        program, BLOCK.replace("syncs: 6", "syncs: 2").replace("claims:", "within: train.py:read\nclaims:")
    )
    together = (
        program.replace("each.grad.norm().item()", "each.grad.norm()")
        .replace("    return [", "    return torch.stack([")
        .replace("parameters()]\n\n", "parameters()]).tolist()\n\n")
    )
    repository.write("train.py", together.replace(STEP, ""))
    done = tickets("fix", "B1-PT-01")
    assert (1, True) == (done.code, "the result differs: model['weight']: 32 of 32 " in done.err), done.err
    repository.write("train.py", together)
    done = tickets("fix", "B1-PT-01")
    assert (0, True) == (done.code, "syncs  2 -> 1" in done.out), done.err


DRAWN = """\
import random
import time

import torch


def main():
    noise = torch.rand(4, device="cuda")
    draw = random.random()
    for part in noise:
        print(part.item())
    print("took", time.perf_counter_ns() % 1000003, "ns,", draw)


if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_what_is_random_is_equal_by_equal_seeds(
    committed: Callable[..., None], repository: Repository, tickets: Tickets
) -> None:
    """And what differs between two runs of the code as found, such as a time, is not compared."""
    committed(DRAWN, BLOCK.replace("syncs: 6", "syncs: 4"))
    repository.write(
        "train.py", DRAWN.replace("in noise:", "in noise.tolist():").replace("part.item()", "part")
    )
    done = tickets("fix", "B1-PT-01")
    assert 0 == done.code, done.err
    said = " ".join(tickets("verify", "B1-PT-01", "-v").out.split())
    assert "equal at 1 of 1 points, without some numbers of printed lines" in said
    # Beside a time, another number of the line is compared.
    repository.write(
        "train.py",
        DRAWN.replace('ns,", draw', 'ns,", 2.5')
        .replace("in noise:", "in noise.tolist():")
        .replace("part.item()", "part"),
    )
    assert "output, line 5: " in tickets("verify", "B1-PT-01").out
    other = DRAWN.replace("torch.rand(4", "torch.rand(5").replace("part.item()", "part")
    repository.write("train.py", other.replace("in noise:", "in noise.tolist():"))
    done = tickets("verify", "B1-PT-01")
    assert "failed: " in done.out
    assert "main.noise: shape (5,) instead of (4,)" in " ".join(done.out.split())


@pytest.mark.slow
def test_a_function_is_compared_by_what_it_returns(
    repository: Repository, git: Git, tickets: Tickets
) -> None:
    """At every point of the sweep; the printed values are those of the first that differs."""
    code = "import torch\n\n\ndef total(n):\n    ones = torch.ones(n, device='cuda')\n    return EACH\n"
    each = "sum(one.item() for one in ones)"
    repository.write("code.py", code.replace("EACH", each))
    git("add", ".")
    git("commit", "-qm", "first")
    git("tag", "first")
    block = BLOCK.replace("train.py", "code.py:total\nsweep: {n: [1, 2, 3, 4]}").replace(
        "syncs: 6", "syncs: n"
    )
    repository.ticket(status="open", more=block)
    repository.write("code.py", code.replace("EACH", "float(min(n, 3))"))
    done = tickets("fix", "B1-PT-01")
    assert (1, True) == (done.code, "the result differs: n=4: result: 3.0 instead of 4.0" in done.err), (
        done.err
    )
    repository.write("code.py", code.replace("EACH", "ones.sum().item()"))
    assert 0 == tickets("fix", "B1-PT-01").code


def test_a_verifier_that_compares_nothing_says_so(repository: Repository, tickets: Tickets) -> None:
    """In the verdict, when the ticket is closed, and in the report."""
    repository.write("verifiers/b1_pt_01.py", VERIFIER.format(ticket="B1-PT-01"))
    repository.write("fixes/b1_pt_01/found.py", FOUND)
    repository.write("fixes/b1_pt_01/fix.py", FIX)
    claims = "## Remediation\n\n```yaml\nclaims: {found: {syncs: tensors}, fix: {syncs: 1}}\n```\n"
    repository.ticket(status="open", more=claims)
    assert (
        "verified: every claim about found and fix holds; result not compared"
        in tickets("verify", "B1-PT-01").out
    )
    done = tickets("close", "B1-PT-01")
    assert (0, True) == (done.code, "result not compared" in done.err), done.err
    assert "result not compared" in "".join(tickets("report", "--format", "html").out)
