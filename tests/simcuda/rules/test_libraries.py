"""What cuBLAS and cuDNN choose is a range, and what ATen does beside them is exact."""

import threading
from itertools import pairwise

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda
from simcuda.real.trace import is_of_aten

WORKSPACE = 32 << 20  # of an H200: CublasHandlePool.cpp gives 32 MiB on compute capability 9.0
MEMORY = {"allocations", "largest_allocation", "peak_bytes", "peak_allocated_bytes"}


def matrices(*sizes: int) -> list[torch.Tensor]:
    """Matrices that can be multiplied, of consecutive sizes; the first product took its workspace."""
    made = [torch.ones(pair, device="cuda") for pair in pairwise(sizes)]
    torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")
    return made


def test_a_product_is_one_to_three_kernels_and_nothing_else_is_in_doubt(gpu: SimulatedCuda) -> None:
    """The usual number is 1; none of them is ATen's own, and the result is all that is allocated."""
    a, b = matrices(8, 4, 6)
    with gpu.measure() as m:
        a @ b
    # 8 x 6 floats of 4 bytes.
    assert (1, 0, 1, 192) == (m.launches, m.aten_launches, m.allocations, m.peak_bytes)
    assert {"launches": (1, 3)} == m.ranges


def test_bounds_add_up(gpu: SimulatedCuda) -> None:
    """Two products and three elementwise kernels are 5 to 9 launches, of which 3 are ATen's."""
    a, b = matrices(8, 8, 8)
    with gpu.measure() as m:
        ((a @ b + 1) @ b).relu().neg()
    assert (5, 3, {"launches": (5, 9)}) == (m.launches, m.aten_launches, m.ranges)


@pytest.mark.parametrize(
    ("code", "own", "copies"),
    [
        # cuBLASLt adds a row to a product of matrices of more than one row and column.
        ("torch.addmm(torch.ones(6, device='cuda'), a, b)", 1, 0),
        # Else what is added is copied into the result first: by a kernel if it is spread, else as bytes.
        ("torch.addmm(torch.ones(1, device='cuda'), a, b[:, :1])", 2, 0),
        ("torch.addmm(torch.ones(6, device='cuda'), a[:1], b)", 1, 1),
        ("torch.addmm(torch.ones(8, 6, device='cuda'), a, b)", 1, 1),
        ("torch.addmm(torch.ones(8, 6, device='cuda'), a, b, beta=0)", 1, 0),
        ("torch.baddbmm(torch.ones(1, device='cuda'), a[None], b[None])", 2, 0),
        # A matrix without a stride of 1 is copied.
        ("torch.ones(8, 8, device='cuda')[:, ::2] @ b", 2, 0),
        ("torch.ones(8, 4, device='cuda').t().contiguous().t() @ b", 2, 0),
    ],
)
def test_what_aten_does_beside_a_product_is_exact(
    gpu: SimulatedCuda, code: str, own: int, copies: int
) -> None:
    """The kernels of ATen's own are those that make ``ones``, and copies."""
    a, b = matrices(8, 4, 6)
    with gpu.measure() as m:
        eval(code, {"torch": torch, "a": a, "b": b})  # noqa: S307 - code of this file
    assert (own, copies, {"launches": (own + 1, own + 3)}) == (m.aten_launches, m.d2d, m.ranges)


def test_the_first_product_takes_a_workspace_that_stays(gpu: SimulatedCuda) -> None:
    """A workspace belongs to a thread's handle and a stream; a backward pass has a thread of its own."""
    x = torch.ones(2, 2, device="cuda", requires_grad=True)
    with gpu.measure() as first:
        y = x @ x
    with gpu.measure() as again, torch.no_grad():
        x @ x
    with gpu.measure() as backward:
        y.backward(torch.ones(2, 2, device="cuda"))  # type: ignore[no-untyped-call]
    with gpu.measure() as elsewhere, torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
        x @ x
    assert (WORKSPACE + 16, WORKSPACE, 16) == (first.peak_bytes, first.largest_allocation, again.peak_bytes)
    assert (WORKSPACE, WORKSPACE) == (backward.largest_allocation, elsewhere.largest_allocation)
    assert first.retained_bytes >= 3 * WORKSPACE


def test_workspaces_can_be_cleared(gpu: SimulatedCuda) -> None:
    """The matrices are left; the next product takes a workspace again."""
    a, b = matrices(2, 2, 2)
    torch._C._cuda_clearCublasWorkspaces()
    # Two matrices of 2 x 2 floats.
    assert 32 == gpu.live_bytes()
    with gpu.measure() as m:
        a @ b
    assert WORKSPACE == m.largest_allocation


def test_a_thread_has_a_handle_of_its_own(gpu: SimulatedCuda) -> None:
    """What another thread multiplies takes another workspace."""
    a, b = matrices(2, 2, 2)
    with gpu.measure() as m:
        thread = threading.Thread(target=torch.mm, args=(a, b))
        thread.start()
        thread.join()
    assert WORKSPACE == m.largest_allocation


def test_the_environment_says_how_much_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two buffers of 16 KiB and one of 8 KiB are 40,960 bytes."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:2:8:1")
    with simcuda.device() as gpu, gpu.measure() as m:
        x = torch.ones(2, 2, device="cuda")
        x @ x
    assert 40_960 == m.largest_allocation


def test_a_convolution_leaves_memory_in_doubt_and_nothing_that_waits(gpu: SimulatedCuda) -> None:
    """Kernels are 1 to 5 and workspaces of unknown size; waits, copies and what stays are exact."""
    layer, x = torch.nn.Conv1d(1, 2, 3, bias=False).to("cuda"), torch.ones(1, 1, 8, device="cuda")
    with gpu.measure() as m:
        layer(x).sum().item()
    # The sum is one kernel of ATen's; results are 2 x 6 floats, and one.
    assert {"launches", *MEMORY} == set(m.ranges)
    assert ((2, 6), (52, None)) == (m.ranges["launches"], m.ranges["peak_bytes"])
    assert (1, 1, 1) == (m.aten_launches, m.syncs, m.d2h)


def test_gradients_of_a_convolution_are_each_a_call_of_the_library(gpu: SimulatedCuda) -> None:
    """Those of input and weight are 1 to 4 kernels each, and that of the bias is a sum by ATen."""
    x, w = torch.ones(1, 1, 8, device="cuda"), torch.ones(2, 1, 3, device="cuda")
    of_result = torch.ones(1, 2, 6, device="cuda")
    for mask, launches, own in (([True, True, True], (3, 9), 1), ([False, True, False], (1, 4), 0)):
        with gpu.measure() as m:
            torch.ops.aten.convolution_backward(of_result, x, w, [2], [1], [0], [1], False, [0], 1, mask)
        assert (launches, own) == (m.ranges["launches"], m.aten_launches)


def test_an_operation_that_is_only_estimated_has_no_upper_bound(gpu: SimulatedCuda) -> None:
    """Nobody knows how many kernels it launches, ATen's own among them."""
    x = torch.ones(8, dtype=torch.complex64, device="cuda")
    with gpu.measure() as m:
        torch.fft.fft(x)
    assert {"launches", "aten_launches", *MEMORY} == set(m.ranges)
    assert (0, None) == m.ranges["aten_launches"]


def test_the_report_marks_what_is_modelled(gpu: SimulatedCuda) -> None:
    """A modelled total has a tilde and its range, the exact ones beside it do not."""
    a, b = matrices(8, 4, 6)
    with gpu.measure() as m:
        a @ b
    lines = [line.split() for line in m.report().splitlines()]
    assert ["~1", "launches", "(1..3)"] in lines
    assert ["192", "peak_bytes"] in lines


@pytest.mark.usefixtures("gpu")
def test_a_limit_that_holds_by_the_usual_number_alone_warns() -> None:
    """A product may be 3 kernels: at most 3 holds for sure, at most 2 may not, and none is too few."""
    a, b = matrices(8, 4, 6)
    with simcuda.assert_at_most(launches=3, aten_launches=0):
        a @ b
    with (
        pytest.warns(UserWarning, match=r"launches: ~1 \(1\.\.3\), at most 2 allowed, by a modelled number"),
        simcuda.assert_at_most(launches=2),
    ):
        a @ b
    with (
        pytest.raises(AssertionError, match=r"launches: ~1 \(1\.\.3\), at most 0 allowed"),
        simcuda.assert_at_most(launches=0),
    ):
        a @ b


@pytest.mark.parametrize(
    ("name", "is_aten"),
    [
        ("ampere_sgemm_32x128_tn", False),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128>(int)", False),
        ("nvjet_sm103_tst_8x64_64x16_4x1_v_bz_TNN", False),
        ("void splitKreduce_kernel<32, 16, int, float>(cublasSplitKParams)", False),
        ("void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(int)", False),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", False),
        ("triton_poi_fused_add_0", False),
        ("void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<int>>(int)", True),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false>(int)", True),
    ],
)
def test_whose_a_kernel_is_by_its_name(name: str, is_aten: bool) -> None:
    """Names as profilers of real GPUs wrote them."""
    assert is_aten == is_of_aten(name)


def grouped(dtype: torch.dtype) -> torch.Tensor:
    """Rows 0 to 3 times the first matrix, none times the second, and rows 3 to 16 times the third."""
    rows, matrices = (torch.ones(size, dtype=dtype, device="cuda") for size in ((16, 8), (3, 8, 8)))
    ends = torch.tensor([3, 3, 16], dtype=torch.int32, device="cuda")
    return torch._grouped_mm(rows, matrices, offs=ends)


def test_products_of_groups_wait_unless_they_are_of_bfloat16(gpu: SimulatedCuda) -> None:
    """A mixture of experts in float32 reads where its groups end; in bfloat16 one kernel takes them all."""
    grouped(torch.float32)
    waits, reads, launches = [], [], []
    for dtype in (torch.bfloat16, torch.float32):
        with gpu.measure() as m:
            grouped(dtype)
        waits.append(m.syncs)
        reads.append(m.d2h_bytes)
        launches.append((m.aten_launches, m.ranges.get("launches")))
    # Of each, the ends are copied from the host, which waits; three of 4 bytes are read back. Two matrices of
    # ones are two kernels. Of the groups, two have rows: two products, of 1 to 3 kernels each.
    assert ([1, 2], [0, 12]) == (waits, reads)
    assert [(3, None), (2, (4, 8))] == launches


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_a_product_may_be_asked_for_in_single_precision(gpu: SimulatedCuda, half: torch.dtype) -> None:
    """One kernel of cuBLAS, for which the host has none: 8 x 6 floats of 4 bytes.

    Each adds up 4 products of 129/128 and 1.
    """
    a, b = matrices(8, 4, 6)
    a, b = a.to(half), torch.full_like(b, 1 + 2**-7).to(half)
    with gpu.measure() as m:
        result = torch.mm(a, b, out_dtype=torch.float32)
    assert (1, 0, 1, 192, ()) == (m.launches, m.syncs, m.allocations, m.peak_bytes, m.unknown)
    assert torch.float32 == result.dtype
    assert torch.equal(result, a.float() @ b.float())
    with gpu.measure() as m:
        torch.addmm(result, a, b, out_dtype=torch.float32, out=result)
    assert (1, 0, 0) == (m.launches, m.d2d, m.allocations)
    assert torch.equal(result, 2 * (a.float() @ b.float()))


def test_a_product_in_a_type_that_cublas_lacks_is_an_error(gpu: SimulatedCuda) -> None:
    """As CUDA has it."""
    assert gpu
    (a,) = matrices(4, 4)
    with pytest.raises(RuntimeError, match="out_dtype must be the same as input dtype or fp32"):
        torch.mm(a, a, out_dtype=torch.float64)
    with pytest.raises(RuntimeError, match="input dtypes must be the same"):
        torch.mm(a, a.half(), out_dtype=torch.float32)
