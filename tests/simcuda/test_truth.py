"""What the cost of an operation rests on, in one word each, and the page of all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from docs.pages.branches import kernel_lines, kernels_beside_composites
from docs.pages.sources import known_from, recordings
from docs.pages.truth import page

import simcuda
from simcuda import basis
from simcuda.basis import confirmations
from simcuda.costs.rules import OF_LIBRARIES, OF_OTHER_VERSIONS, RULES
from simcuda.ledger import noting_operations, operations_of
from simcuda.traces.call import METRICS

DOCS = Path(__file__).parents[2] / "docs"
OF_ANOTHER_TORCH = torch.__version__.split("+")[0] != json.loads(basis.TESTED.read_text())["torch"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested", "ignore:Sparse", "ignore:index_reduce")
@pytest.mark.skipif(OF_ANOTHER_TORCH, reason="the page is of the torch by which it was made")
def test_the_page_is_what_the_command_prints() -> None:
    """docs/truth.md is what ``python -m docs.pages.truth`` prints, with each rule and each recording once."""
    text = page()
    assert (DOCS / "truth.md").read_text() == text
    _, _, after = text.partition("\n## Recordings\n")
    rows = re.findall(r"^\| ([\w.-]+) \|", after, flags=re.MULTILINE)
    heads = ["recording", "rule", "rule", "rule"]
    names = [recording["file"].partition(".json")[0] for recording in recordings()]
    names += [rule.id for rule in (*RULES, *OF_LIBRARIES, *OF_OTHER_VERSIONS)]
    assert sorted([*heads, *names]) == sorted(rows)


@pytest.mark.parametrize(
    ("operation", "word"),
    [
        ("aten._local_scalar_dense", "read"),  # its rule, from CUDAScalar.cu
        ("aten.sin", "read"),  # tagged pointwise, without a rule
        ("aten.view", "read"),
        ("aten._to_copy", "read"),
        ("aten.mm", "modelled"),  # cuBLAS chooses its kernels
        ("aten.linalg_eig", "unknown"),  # docs/simcuda-ops.md: not documented
        # Two rules: reading by a mask is modelled, reading by indices is not.
        ("aten.index", "modelled"),
    ],
)
def test_where_a_cost_is_known_from(operation: str, word: str) -> None:
    """One word for each way to know it."""
    assert word == known_from(operation)


@pytest.mark.parametrize(
    ("numbers", "is_tested", "words"),
    [
        ([[12], [0, 40], [], [3]], True, ("recorded", "tested")),
        ([[], [0, 40]], True, ("recorded at 0", "tested")),
        ([[12, 0, 2]], True, ("refuted", "recorded", "tested")),
        ([], True, ("tested",)),
        ([], False, ("confirmed by nothing",)),
    ],
)
def test_what_confirms_a_cost(
    numbers: list[list[int]],
    is_tested: bool,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Recordings, zeros apart; tests; or nothing, which is said."""
    recorded = {
        "metrics": ["launches", "copies", "bytes", "waits"],
        "traces": {"digest": {"gpu": "NVIDIA A100-PG509-200", "operations": {}}},
    }
    if numbers:
        rows = numbers + [[]] * (4 - len(numbers))
        recorded["traces"]["digest"]["operations"]["aten.sin"] = rows  # type: ignore[index]  # of mixed values
    (tmp_path / "recorded.json").write_text(json.dumps(recorded))
    (tmp_path / "tested.json").write_text(json.dumps({"operations": ["sin"] if is_tested else []}))
    monkeypatch.setattr(basis, "RECORDED", tmp_path / "recorded.json")
    monkeypatch.setattr(basis, "TESTED", tmp_path / "tested.json")
    caches = (basis._data, basis.recorded, basis.tested)
    for each in caches:
        each.cache_clear()
    try:
        assert words == confirmations("aten.sin.default", METRICS)
    finally:
        for each in caches:
            each.cache_clear()


def test_counts_are_attributed_to_the_operation_that_made_them() -> None:
    """Not to those around it; explicit waits belong to none, and nothing is noted unless asked."""
    with noting_operations(), simcuda.device() as gpu:
        x = torch.rand(8, device="cuda")
        with gpu.measure() as cost:
            # isclose and all make kernels, and allclose reads their result by an operation of its own.
            torch.allclose(x, x)
            torch.cuda.synchronize()
    noted = operations_of(cost)
    assert (1, 2) == (noted["aten._local_scalar_dense.default"]["stream_syncs"], cost.syncs)
    assert {} == noted["aten.allclose.default"]
    assert cost.launches == sum(each["aten_launches"] for each in noted.values()) > 0
    with simcuda.device() as gpu, gpu.measure() as cost:
        torch.rand(8, device="cuda").sum().item()
    assert {} == operations_of(cost)


def test_every_kernel_of_cuda_beside_a_composite_is_handled() -> None:
    """By PyTorch's own list, of whatever version is installed: none would be counted as its composite."""
    kernels = list(kernels_beside_composites())
    assert [] == [kernel.name for kernel in kernels if not kernel.handling]
    assert {"aten._fused_rms_norm", "aten._chunk_cat", "aten.silu_backward"} <= {
        each.name for each in kernels
    }


@pytest.mark.skipif(OF_ANOTHER_TORCH, reason="the page is of the torch by which it was made")
def test_the_page_of_branches_has_the_kernels_that_the_command_finds() -> None:
    """docs/simcuda-branches.md has what ``python -m docs.pages.branches`` prints of kernels."""
    assert "\n".join(kernel_lines()) in (DOCS / "simcuda-branches.md").read_text()


# Operators that were made on a simulated device believe in CUDA for good: they are asked in another process.
ASKING = """
import json, sys
from docs.pages.branches import ask, name_of, op_db

every, *further = sys.argv[1:]
operators = [op for place, op in enumerate(op_db()) if place % int(every) == 0 or name_of(op) in further]
asking, unseen = ask(operators)
json.dump([[name_of(op) for op in operators], [" | ".join(row) for row in asking], unseen], sys.stdout)
"""


@pytest.mark.slow
@pytest.mark.skipif(OF_ANOTHER_TORCH, reason="the page is of the torch by which it was made")
def test_the_page_of_branches_has_the_questions_that_the_command_finds() -> None:
    """Of each eighth operator and of those that it lists; ``EVERY_OPERATOR=1`` asks all, for minutes."""
    page = (DOCS / "simcuda-branches.md").read_text().partition("\n## Functions that ask for the device\n")[2]
    table, _, end = page.partition("\nThe samples of ")
    rows = [line.strip("| ") for line in table.splitlines() if line.startswith("| `")]
    further = [row.partition(" | ")[0] for row in rows]
    every = "1" if "EVERY_OPERATOR" in os.environ else "8"
    command = [sys.executable, "-c", ASKING, every, *further]
    done = subprocess.run(command, cwd=DOCS.parent, check=True, capture_output=True, text=True)
    operators, asking, unseen = json.loads(done.stdout)
    assert rows == asking
    listed = set(re.findall("`[^`]+`", end))
    assert listed.intersection(operators) == set(unseen)
