import pytest

import simcuda
from simcuda.costs.rules import RULES, CostRule, example_names, run_example

pytestmark = pytest.mark.filterwarnings(
    "ignore:The PyTorch API of nested", "ignore:Sparse", "ignore:index_reduce"
)


@pytest.mark.parametrize("rule", tuple(RULES), ids=lambda rule: rule.id)
def test_operations_on_a_device_do_not_block_unasked(rule: CostRule) -> None:
    """Only copies between host and device may block without a synchronise call, and no example makes one."""
    with simcuda.device() as gpu:
        names = example_names()
        # The first product takes memory for cuBLAS, which may block.
        run_example(rule, names)
        with gpu.measure() as m:
            run_example(rule, names)
        names.clear()
    assert 0 == m.implicit_syncs
