"""``tickets verify --matrix``: every cell that the configuration declares, and where they do not agree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Ran
from tests.conftest import Git, Repository
from tests.other_python import other_python
from tests.verify.conftest import CLAIMS, FOUND, add, add_with_few_points

from finding_tickets.errors import ExitCode
from finding_tickets.register.staleness import own_torch

Tickets = Callable[..., Ran]
OTHER = "1.99.0"
"""A version that no torch has which this tool can use: what says so is a stand-in."""
BY_TORCH = """
import torch


def check(tensors):
    for _ in range(2 if torch.__version__.startswith("1.99") else 1):
        total = torch.stack([tensor.sum() for tensor in tensors]).double().sum().item()
    return total
"""
BOUND = CLAIMS.replace("syncs: 1", "syncs: [<= 2, {is: 1, expect: refuted, why: it reads again}]")


def declare(repository: Repository, **torch: Path) -> None:
    """Declare a matrix with these interpreters, the version of each with underscores."""
    rows = "\n".join(f'"{name.strip("v").replace("_", ".")}" = "{path}"' for name, path in torch.items())
    repository.write("tickets.toml", f"[matrix.torch]\n{rows}\n")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter whose torch says that it is ``OTHER``."""
    return other_python(tmp_path_factory.mktemp("envs") / "other", OTHER)


@pytest.mark.slow
def test_every_cell_is_measured_and_compared(repository: Repository, tickets: Tickets, other: Path) -> None:
    """A page for each ticket and cell, then who measured what, and a line for each difference."""
    add(repository, "A-1")
    add(repository, "B-1", claims=BOUND, fix=BY_TORCH)
    declare(repository, v1_99_0=other)
    ran = tickets("verify", "--all", "--matrix", "-v")
    # In B-1 the claim that one read is enough is false with the other torch alone, where that is expected.
    assert ExitCode.GATE_FAILED == ran.code
    assert (
        f"gate failed: B-1 (simulated h200-cuda13, torch {own_torch()}, 4 points): "
        "fix.syncs[1] holds, which is not expected of it\n"
    ) in ran.err
    expected = f"""
CELL  MEASURED WITH
1     torch {own_torch()}
2     torch {OTHER}

TICKET  1         2
A-1     verified  verified
B-1     verified  failed

the cells agree on 1 of 2 documents that are measured in more than one
B-1 verdict: verified in torch {own_torch()}; failed in torch {OTHER}
B-1 fix.syncs[0]: 1 (holds) in torch {own_torch()}; 2 (holds) in torch {OTHER}
B-1 fix.syncs[1]: 1 (holds) in torch {own_torch()}; 2 (false) in torch {OTHER}
"""
    assert ran.out.endswith(expected)
    assert 2 == ran.out.count(f", torch {OTHER}, 4 points\n")
    files = (file.relative_to(repository.root) for file in repository.root.glob("evidence/*/*"))
    assert [
        f"evidence/{ticket}/simulated-torch{torch}-h200-cuda13.json"
        for ticket in ("A-1", "B-1")
        for torch in (OTHER, own_torch())
    ] == sorted(map(str, files))


def test_machines_are_told_the_same(repository: Repository, git: Git, tickets: Tickets) -> None:
    """The items say for each which cell it is of; the matrix stands beside them."""
    add(repository, "A-1", fix=FOUND)
    git("add", ".")
    git("commit", "-m", "as it was")
    add(repository, "A-1")
    repository.write("tickets.toml", "matrix = {revisions = ['HEAD']}")
    ran = tickets("verify", "A-1", "--matrix", "--format", "json")
    assert [None, "HEAD"] == [item["revision"] for item in ran.data]
    matrix = ran.envelope["matrix"]
    assert ["work tree", "HEAD"] == [cell["name"] for cell in matrix["cells"]]
    assert ["simulated", own_torch(), "h200-cuda13", "HEAD"] == list(matrix["cells"][1].values())[1:]
    assert [{"id": "A-1", "verdicts": ["verified", "failed"]}] == matrix["documents"]
    assert {
        "id": "A-1",
        "what": "fix.syncs",
        "values": [
            {"value": "1 (holds)", "cells": ["work tree"]},
            # As it was, it read each of the tensors.
            {"value": "tensors (false)", "cells": ["HEAD"]},
        ],
    } == matrix["differences"][1]
    assert 1 == matrix["compared"]


@pytest.mark.slow
def test_what_cannot_be_measured_leaves_the_rest_alone(
    repository: Repository, tickets: Tickets, other: Path
) -> None:
    """A Python that is not there and a GPU that is not here are named; every other cell is measured."""
    add(repository, "A-1")
    repository.write(
        "tickets.toml",
        f"""
        [matrix]
        meters = ["simulated", "cuda"]
        torch = {{"{OTHER}" = "{other}", "2.0.1" = "gone/python"}}
        gpus = {{"NVIDIA Nothing" = {{}}}}
        """,
    )
    ran = tickets("verify", "A-1", "--matrix")
    assert ExitCode.INCONCLUSIVE == ran.code
    gone = f"nothing can be measured: {repository.root}/gone/python: No such file or directory"
    assert 2 == ran.out.count(f"A-1  inconclusive: {gone}")
    # Each page says which cell it is of.
    for cell in ("simulated h200-cuda13, torch 2.0.1", "cuda NVIDIA Nothing, torch 2.0.1"):
        assert f"A-1  inconclusive: {gone}\n  {cell}\n" in ran.out
    for python in ("the tool's own Python", other):
        assert f"A-1  inconclusive: there is no NVIDIA Nothing here that {python} can use" in ran.out
    # Two versions of torch simulate; a third one is not there, and none has the GPU.
    (row,) = (line.split() for line in ran.out.split("\n") if line.startswith("A-1     "))
    assert ["A-1", *["verified"] * 2, *["inconclusive"] * 4] == row
    assert "the cells agree on 1 of 1 document that is measured in more than one\n" in ran.out


@pytest.mark.slow
def test_what_is_stale_in_a_cell_is_measured_there(
    repository: Repository, tickets: Tickets, other: Path
) -> None:
    """Nothing where every cell is fresh, one whose evidence is gone, all where the code has changed."""
    add_with_few_points(repository, "A-1")
    declare(repository, v1_99_0=other)
    first = tickets("verify", "--stale", "--matrix", "-v")
    assert 2 == first.out.count("A-1  verified: ")
    again = tickets("verify", "--stale", "--matrix", "-v")
    assert (ExitCode.OK, 0) == (again.code, again.out.count("A-1  verified: "))
    # What was measured before is in the table all the same.
    assert "A-1     verified  verified\n" in again.out
    (repository.root / f"evidence/A-1/simulated-torch{OTHER}-h200-cuda13.json").unlink()
    one = tickets("verify", "--stale", "--matrix", "-v")
    assert f"measuring A-1 (torch {OTHER})\n" in one.err
    repository.write("fixes/a_1/fix.py", FOUND)
    assert 2 == tickets("verify", "--stale", "--matrix", "-v").out.count("A-1  failed: ")


@pytest.mark.slow
def test_an_interpreter_is_found_from_the_root(repository: Repository, tickets: Tickets) -> None:
    """So a folder can be moved with its environments."""
    add_with_few_points(repository, "A-1")
    other_python(repository.root / "env", OTHER)
    declare(repository, v1_99_0=Path("env/bin/python"))
    assert ExitCode.OK == tickets("verify", "A-1", "--matrix").code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--all"], "the configuration declares no matrix"),
        (["--all", "--meter", "cuda"], "--matrix has meters and revisions of its own"),
        (["--all", "--at", "HEAD"], "--matrix has meters and revisions of its own"),
        ([], "name the tickets to verify"),
    ],
)
def test_wrong_usage(tickets: Tickets, arguments: list[str], message: str) -> None:
    """It needs a declaration, and excludes what it declares."""
    ran = tickets("verify", "--matrix", *arguments)
    assert (ExitCode.USAGE, True) == (ran.code, message in ran.err)
