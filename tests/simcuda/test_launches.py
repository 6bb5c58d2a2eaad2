import pytest
import torch

import simcuda
from simcuda.costs.call import OpCost
from simcuda.costs.launches import elementwise, foreach_norm, multi_tensor
from simcuda.profile import KERNEL_ARGUMENTS_4_KIB, KERNEL_ARGUMENTS_32_KIB, MultiTensorTables

CUDA_12, CUDA_13 = KERNEL_ARGUMENTS_4_KIB, KERNEL_ARGUMENTS_32_KIB
CHUNK = 65_536


@pytest.mark.parametrize(
    ("elements", "itemsize", "expected"),
    [
        (0, 4, 0),
        (1, 4, 1),
        # Offsets of 2^31 - 1 bytes and more need another kernel.
        (2**29, 4, 1),
        (2**29 + 1, 4, 2),
        (2**31 - 1, 1, 1),
        (2**31, 1, 2),
        (2**28 + 1, 8, 2),
        # Halves of 2^29 and 2^29 + 1, the second again in two.
        (2**30 + 1, 4, 3),
    ],
)
def test_elementwise(elements: int, itemsize: int, expected: int) -> None:
    """One kernel, none for nothing, more where byte offsets outgrow 31 bits."""
    assert expected == elementwise(elements, itemsize)


@pytest.mark.parametrize(
    ("depth", "cuda_12", "cuda_13"), [(1, 110, 770), (2, 64, 448), (3, 48, 336), (4, 36, 252), (5, 30, 210)]
)
def test_a_multi_tensor_kernel_is_full_of_tensors(depth: int, cuda_12: int, cuda_13: int) -> None:
    """Up to the table's number of small tensors take one kernel, and one more takes two."""
    for tables, most in ((CUDA_12, cuda_12), (CUDA_13, cuda_13)):
        assert 1 == multi_tensor((1,) * most, tables, depth=depth)
        assert 2 == multi_tensor((1,) * (most + 1), tables, depth=depth)


@pytest.mark.parametrize(
    ("sizes", "tables", "expected"),
    [
        # One tensor of 320 chunks fills a kernel of CUDA 12, and one element more opens the next.
        ([320 * CHUNK], CUDA_12, 1),
        ([320 * CHUNK + 1], CUDA_12, 2),
        ([2240 * CHUNK + 1], CUDA_13, 2),
        # Two tensors of 200 chunks: 200 + 120 chunks in the first kernel, the other 80 in a second.
        ([200 * CHUNK] * 2, CUDA_12, 2),
        # 321 chunks leave one in the second kernel, where 109 tensors more make 110 and fill it.
        ([321 * CHUNK] + [1] * 109, CUDA_12, 2),
        ([321 * CHUNK] + [1] * 110, CUDA_12, 3),
        # Behind 109 small tensors, a 110th of 211 chunks ends the kernel at 320 chunks, not at its first.
        ([1] * 109 + [211 * CHUNK], CUDA_12, 1),
        ([1] * 109 + [212 * CHUNK], CUDA_12, 2),
        # Only tensors with elements count.
        ([0] * 1000, CUDA_12, 0),
        ([0, 1] * 110, CUDA_12, 1),
    ],
)
def test_a_multi_tensor_kernel_is_full_of_chunks(
    sizes: list[int], tables: MultiTensorTables, expected: int
) -> None:
    """A tensor may be cut off between two kernels."""
    assert expected == multi_tensor(tuple(sizes), tables, depth=1)


def test_scalars_of_their_own_leave_room_for_fewer_tensors() -> None:
    """With a scalar for each tensor a kernel takes 96 (CUDA 12) or 672 (CUDA 13) at depth 1."""
    for tables, most in ((CUDA_12, 96), (CUDA_13, 672)):
        assert 1 == multi_tensor((1,) * most, tables, depth=1, scalars=True)
        assert 2 == multi_tensor((1,) * (most + 1), tables, depth=1, scalars=True)


def test_foreach_norm_of_few_small_tensors_is_three_kernels() -> None:
    """One clears the partial norms, one computes them, one adds them up: 110 partial norms of 4 bytes."""
    expected = OpCost(3, temporaries=(440,))
    assert expected == foreach_norm([10] * 110, CUDA_12, accumulator_bytes=4, result_bytes=2)
    assert 4 == foreach_norm([10] * 111, CUDA_12, accumulator_bytes=4, result_bytes=2).launches


def test_foreach_norm_adds_up_400_tensors_in_a_kernel() -> None:
    """401 small tensors of CUDA 13: clear, one multi-tensor kernel (up to 770), two to add up."""
    assert 3 == foreach_norm([10] * 400, CUDA_13, accumulator_bytes=4, result_bytes=2).launches
    assert 4 == foreach_norm([10] * 401, CUDA_13, accumulator_bytes=4, result_bytes=2).launches


def test_foreach_norm_keeps_room_for_the_largest_tensor() -> None:
    """A tensor of 2 chunks beside a small one: 2 tensors x 2 chunks x 4 bytes."""
    assert (16,) == foreach_norm([CHUNK + 1, 10], CUDA_13, accumulator_bytes=4, result_bytes=2).temporaries


def test_foreach_norm_of_empty_tensors() -> None:
    """An empty tensor costs a kernel that writes its zero; with nothing else there is nothing to clear.

    3 tensors, one empty: clear, compute, add up, zero = 4. Two empty tensors: add up and two zeros = 3.
    """
    assert OpCost(4, temporaries=(12,), workspaces=(2,)) == foreach_norm(
        [10, 0, 10], CUDA_13, accumulator_bytes=4, result_bytes=2
    )
    assert OpCost(3, temporaries=(0,), workspaces=(2, 2)) == foreach_norm(
        [0, 0], CUDA_13, accumulator_bytes=4, result_bytes=2
    )


@pytest.mark.parametrize(("gradient", "dropout"), [(False, 0.0), (False, 0.5), (True, 0.0)])
def test_what_is_counted_around_attention_stays_counted(gradient: bool, dropout: float) -> None:
    """Which kernels attention has is unknown, but for one that does it all: cuDNN's, or ATen's."""
    with simcuda.device() as gpu:
        x = torch.ones(4, device="cuda")
        query = torch.ones(1, 2, 8, 16, device="cuda", requires_grad=gradient)
        with gpu.measure() as cost:
            for _ in range(100):
                x.add_(1)
            torch.nn.functional.scaled_dot_product_attention(query, query, query, dropout_p=dropout)
    # The 100 additions around it, and the one without dropout.
    assert (100 if dropout else 101, None) == cost.ranges["launches"]
    assert (100, None) == cost.ranges["aten_launches"]
    assert cost.launches > 100
