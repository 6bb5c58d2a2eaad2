import pytest
import torch

import simcuda
from simcuda.rules import RULES, Rule

NAMES = """
x = torch.rand(8, device="cuda")
y = torch.rand(3, device="cuda")
value = torch.rand((), device="cuda")
index = torch.tensor([0, 2, 1], device="cuda")
"""


@pytest.mark.parametrize("rule", tuple(RULES), ids=lambda rule: rule.id)
def test_operations_on_a_device_do_not_block_unasked(rule: Rule) -> None:
    """Only copies between host and device may block without a synchronise call, and no example makes one."""
    names: dict[str, object] = {"torch": torch}
    with simcuda.device() as gpu:
        exec(NAMES, names)  # noqa: S102 - the names are above
        with gpu.measure() as m:
            exec(rule.example, names)  # noqa: S102 - the examples are ours
        names.clear()
    assert 0 == m.implicit_syncs
