"""Every rule has an id, a source and an example that it is taken for; none is unknown."""

from __future__ import annotations

import pytest

import simcuda
from simcuda.costs.call import OpCost, OperationCall
from simcuda.costs.rules import RULES, CostRule, example_names, run_example

pytestmark = pytest.mark.filterwarnings(
    "ignore:The PyTorch API of nested", "ignore:Sparse", "ignore:index_reduce"
)


def test_no_two_rules_have_one_id() -> None:
    """A recording and the page of rules know a rule by its id."""
    assert len(RULES) == len({rule.id for rule in RULES})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_is_taken_for_its_example(rule: CostRule, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of a rule runs, leaves no operation unknown, and is charged by that rule."""
    charged: list[str] = []
    cost = CostRule.cost

    def spy(self: CostRule, call: OperationCall) -> OpCost:
        charged.append(self.id)
        return cost(self, call)

    monkeypatch.setattr(CostRule, "cost", spy)
    with simcuda.device() as gpu:
        names = example_names()
        charged.clear()
        with gpu.measure() as measured:
            run_example(rule, names)
        names.clear()
    assert rule.id in charged
    assert () == measured.unknown
    assert len(rule.source) > len("ATen/native/")


NO_WAIT = {
    "write one value by mask": "x[x > 0] = 1.0",
    "write a tensor by index": "x[index] = value",
    "read by index": "x[index]",
    "one_hot of a known number of classes": "torch.nn.functional.one_hot(index, num_classes=8)",
    "randperm": "torch.randperm(20000, device='cuda')",
    "repeat_interleave of a known size": "torch.repeat_interleave(x, 2, output_size=16)",
    "repeat_interleave by a tensor, of a known size": "torch.repeat_interleave(y, index, output_size=3)",
    "any of one value": "torch.any(value)",
}
WAITS = {
    "write a tensor by mask": ("x[x > 0] = value", 1),
    "write by host index": ("x[host] = value", 1),
    "read by mask": ("x[x > 0]", 1),
    "read by host index": ("x[host]", 1),
    "nonzero": ("x.nonzero()", 1),
    "a question": ("bool(value)", 1),
    "one_hot": ("torch.nn.functional.one_hot(index)", 1),
    "repeat_interleave": ("torch.repeat_interleave(y, index)", 2),
}


def waits_of(code: str) -> int:
    """How often the host waits for one line of code."""
    with simcuda.device() as gpu:
        names = example_names()
        names["host"] = names["index"].cpu()
        with gpu.measure() as measured:
            exec(code, names)  # noqa: S102 - the code is ours
        names.clear()
    assert () == measured.unknown
    return measured.syncs


@pytest.mark.parametrize("code", NO_WAIT.values(), ids=NO_WAIT)
def test_what_pytorch_says_does_not_wait(code: str) -> None:
    """The calls for which PyTorch's own test of its sync warnings sees no wait make none here."""
    assert 0 == waits_of(code)


@pytest.mark.parametrize(("code", "waits"), WAITS.values(), ids=WAITS)
def test_what_pytorch_says_waits(code: str, waits: int) -> None:
    """The calls for which PyTorch's own test of its sync warnings sees a wait make these here."""
    assert waits == waits_of(code)


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
def test_what_is_searched_by_cub_is_approximate(code: str, approximate: bool) -> None:
    """A mask on the device is searched as ``nonzero`` does; indices and masks on the host are not."""
    with simcuda.device() as gpu:
        names = example_names()
        with gpu.measure() as cost:
            exec(code, names)  # noqa: S102 - the code is above
        names.clear()
    assert approximate == bool(cost.approximate)
