"""Every rule has an id, a source and an example that it is taken for; none is unknown."""

from __future__ import annotations

import pytest

from simcuda import SimulatedCuda
from simcuda.costs.call import OpCost, OperationCall
from simcuda.costs.rules import RULES, CostRule, example_names, run_example
from simcuda.costs.rules.without_rule import HOST_ONLY, NEVER_WAITING, TAKEN_APART, never_waits

pytestmark = pytest.mark.filterwarnings(
    "ignore:The PyTorch API of nested", "ignore:Sparse", "ignore:index_reduce"
)


def test_no_two_rules_have_one_id() -> None:
    """A recording and the page of rules know a rule by its id."""
    assert len(RULES) == len({rule.id for rule in RULES})


def test_an_operation_that_nobody_looked_at_might_wait() -> None:
    """Unknown is what holds for everything in no table and under no rule."""
    assert not never_waits("aten._fake_quantize_learnable_per_tensor_affine")


def test_no_operation_is_in_two_tables() -> None:
    """What never waits or is taken apart has no rule for every call of it, is listed once, exists on CUDA."""
    names = [name for table in (NEVER_WAITING, TAKEN_APART) for group in table.values() for name in group]
    always = {op for rule in RULES for op in rule.ops}
    assert len(names) == len(set(names))
    assert set() == {f"aten.{name}" for name in names} & (always | set(HOST_ONLY))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_is_taken_for_its_example(
    rule: CostRule, shared_gpu: SimulatedCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example of a rule runs, leaves no operation unknown, and is charged by that rule.

    Only copies between host and device may block without a synchronise call, and no example makes one.
    """
    charged: list[str] = []
    cost = CostRule.cost

    def spy(self: CostRule, call: OperationCall) -> OpCost:
        charged.append(self.id)
        return cost(self, call)

    monkeypatch.setattr(CostRule, "cost", spy)
    names = example_names()
    # The first product takes memory for cuBLAS, which may block.
    run_example(rule, names)
    charged.clear()
    with shared_gpu.measure() as measured:
        run_example(rule, names)
    assert rule.id in charged
    assert (0, ()) == (measured.implicit_syncs, measured.unknown)
    assert len(rule.source) > len("ATen/native/")


@pytest.mark.parametrize(
    ("code", "approximate"),
    [
        ("x[x > 0]", True),
        ("x[x > 0] = value", True),
        ("x[index]", False),
        ("x[index] = value", False),
        ("x[(x > 0).cpu()]", False),
        ("x[x > 0] = 1.0", False),
    ],
)
def test_what_is_searched_by_cub_is_approximate(
    shared_gpu: SimulatedCuda, code: str, approximate: bool
) -> None:
    """A mask on the device is searched as ``nonzero`` does; indices and masks on the host are not."""
    names = example_names()
    with shared_gpu.measure() as cost:
        exec(code, names)  # noqa: S102 - the code is above
    assert approximate == bool(cost.approximate)
