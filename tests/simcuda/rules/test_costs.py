"""What one call costs by the rules, with the bytes that no recording of patterns has.

Numbers are derived from the source that the rule names. Sizes are those of float32, 4 bytes, and of int64, 8.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.simcuda.conftest import statements_for

from simcuda import SimulatedCuda

pytestmark = pytest.mark.filterwarnings("ignore:torch.searchsorted", "ignore:The use of `x.T`")

NAMES = """
F = torch.nn.functional
x, y = torch.rand(100, device="cuda"), torch.rand(100, device="cuda")
four, ones = torch.rand(4, device="cuda"), torch.ones(4, device="cuda")
m = torch.rand(4, 5, device="cuda")
wide = torch.rand(4, 6, device="cuda")
table = torch.rand(20, 10, device="cuda")
many = torch.zeros(200_000, device="cuda")
long = torch.rand(5000, device="cuda")
single, value = torch.rand((), device="cuda"), torch.ones((), device="cuda")
whole = torch.ones(4, 5, dtype=torch.int32, device="cuda")
ten = torch.arange(10, device="cuda")
index = torch.arange(3, device="cuda")
order = torch.arange(4, device="cuda")
mask = torch.arange(100, device="cuda") < 30
grid = torch.arange(100, device="cuda").view(20, 5) < 30
truths = torch.ones(4, dtype=torch.bool, device="cuda")
eye, eyes = torch.eye(3, device="cuda"), torch.eye(3, device="cuda").repeat(4, 1, 1)
square = torch.zeros(4, 4, device="cuda")
host_value = torch.tensor(1.0)
places = torch.zeros(2, 4, dtype=torch.long, device="cuda")
lengths = torch.tensor([3, 5], device="cuda")
leaf = torch.rand(3, 4, device="cuda", requires_grad=True)
row, column, steps = leaf[1], leaf[:, 1], leaf[::2]
of_row, of_column = torch.ones(4, device="cuda"), torch.ones(3, device="cuda")
of_steps = torch.ones(2, 4, device="cuda")
image = torch.rand(2, 4, 3, device="cuda")
twelve = torch.rand(6, 8, device="cuda")
halves = torch.ones(3, dtype=torch.bfloat16, device="cuda")
host, doubles = torch.ones(10), torch.ones(10, dtype=torch.float64)
pinned, pinned_doubles = host.pin_memory(), doubles.pin_memory()
column_of_two = torch.ones(10, 2, device="cuda")[:, 0]
waves = torch.polar(four, four)
thousand, million = torch.ones(1000, device="cuda"), torch.ones(1 << 20, device="cuda")
parts = [torch.ones(10, device="cuda") for _ in range(300)]
chunks = [torch.ones(3, device="cuda"), torch.ones(65_536 * 2 + 1, device="cuda")]
"""

SORTING = {
    # Values are copied twice, positions made and copied, and both sorted: 2 x 400 and 800 bytes are copied,
    # as an H100 counted. Results of 400 + 800 and a range of 800.
    "x.sort()": {"launches": 2, "d2d": 3, "d2d_bytes": 1600, "allocations": 3, "peak_bytes": 2000},
    # 20 rows of 10: the range of 80 bytes is spread by a kernel; results of 800 + 1600.
    "table.argsort(dim=1)": {"launches": 3, "d2d": 2, "d2d_bytes": 1600, "peak_bytes": 2480},
    # 5000 values: results 20000 + 40000, positions 40000, pairs of 12 bytes.
    "long.sort()": {"launches": 2, "peak_bytes": 160_000},
    # A single number is copied, and a position of 0 filled in.
    "single.sort()": {"launches": 1, "d2d": 1},
    # One value is in order: a range alone.
    "x[:1].sort()": {"launches": 1, "d2d": 3},
    "x[:0].sort()": {"launches": 0, "peak_bytes": 0},
    "m.kthvalue(2, dim=1)": {"launches": 1},
    # The copy of 80 bytes beside 5 values and 5 positions.
    "m.t().median(dim=1)": {"launches": 2, "peak_bytes": 80 + 5 * 12},
    "x.topk(2)": {"launches": 2, "peak_bytes": 24},
    "x.topk(2, sorted=False)": {"launches": 1},
    # One value of each row is not sorted.
    "m.topk(1)": {"launches": 1},
    "x.topk(0)": {"launches": 0},
    "m.cumsum(0)": {"launches": 1, "peak_bytes": 80},
    # Integers are widened in a copy of 160 bytes first.
    "whole.cumsum(1)": {"launches": 2, "peak_bytes": 320},
    "single.cumsum(0)": {"launches": 0, "d2d": 1},
    "m.cummax(0)": {"launches": 1, "peak_bytes": 20 * 12},
    "table.mode(1)": {"launches": 1, "peak_bytes": 20 * 12},
    # The 200 elements with the columns innermost.
    "table.mode(0)": {"launches": 2, "peak_bytes": 10 * 12 + 800},
}
READS = {
    # 100 comparisons of a byte, all of them, one byte read.
    "x.equal(y)": {"syncs": 1, "d2h_bytes": 1, "launches": 2, "peak_bytes": 101},
    # 200000 truth values are shared by 25 blocks: 25 bytes and a counter of 4; the sum, the comparisons.
    "many.equal(many + 0)": {"syncs": 1, "peak_bytes": 1_000_000 + 1 + 25 + 4},
    # All of one truth value is that value, copied.
    "x[:1].equal(y[:1])": {"syncs": 1, "launches": 1, "d2d": 1},
    "x.equal(x.view(100))": {"syncs": 0, "launches": 0},
    "square.equal(square.t())": {"syncs": 1},
    # 13 operations and all(): 16 bytes an element where infinities are looked for.
    "torch.allclose(x, y)": {"syncs": 1, "launches": 14, "peak_bytes": 1600},
    "torch.allclose(x, y, rtol=0, atol=0)": {"syncs": 1, "launches": 2, "peak_bytes": 101},
    # One error code is converted and copied, several are reduced.
    "torch.linalg.cholesky(eye)": {"syncs": 1, "d2h_bytes": 1, "d2d": 1},
    "torch.linalg.cholesky(eyes)": {"syncs": 1, "d2h_bytes": 1, "d2d": 0},
    "torch.linalg.inv_ex(eye, check_errors=True)": {"syncs": 1, "d2h_bytes": 1, "launches": 2},
    "torch.linalg.inv_ex(eye)": {"syncs": 0},
    "torch.linalg.lstsq(eyes, eyes)": {"syncs": 1, "d2h_bytes": 1},
    "torch.linalg.pinv(eye, hermitian=True)": {"syncs": 1},
    # Whether 4 iterations converged, 4 bytes each, and one truth value.
    "torch.linalg.svd(eyes)": {"syncs": 2, "d2h_bytes": 4 * 4 + 1},
    # The least and the largest of 8 bytes each; bytes have no negative ones.
    "ten.bincount()": {"syncs": 2, "d2h_bytes": 16},
    "ten.to(torch.uint8).bincount()": {"syncs": 1, "d2h_bytes": 1},
    "ten[:0].bincount(minlength=5)": {"syncs": 0, "launches": 1},
    "x.histc(4)": {"syncs": 2, "d2h_bytes": 8},
    # The total of 8 bytes and one truth value; result and running sums of 80, comparisons 10, the answer 1.
    "torch.repeat_interleave(ten)": {"syncs": 2, "d2h_bytes": 9},
    # The least length, and whether they add up.
    "torch.segment_reduce(x[:8], 'sum', lengths=lengths)": {"syncs": 2, "d2h_bytes": 9},
    "torch.segment_reduce(x[:8], 'sum', lengths=lengths, unsafe=True)": {"syncs": 0},
}
INDEXING = {
    # CUB adds up and selects in 3 kernels: 30 positions and a count of 4.
    "mask.nonzero()": {"syncs": 1, "d2h_bytes": 4, "launches": 3, "peak_bytes": 30 * 8 + 4},
    # Two dimensions are worked out by one kernel more; what is transposed is copied before.
    "grid.nonzero()": {"syncs": 1, "launches": 4, "peak_bytes": 30 * 16 + 4},
    "grid.t().nonzero()": {"syncs": 1, "launches": 5, "peak_bytes": 30 * 16 + 4 + 100},
    "single.nonzero()": {"syncs": 1, "launches": 1},
    "x[:0].nonzero()": {"syncs": 1},
    # Beside the 30 floats: 30 positions and the count.
    "x.masked_select(mask)": {"syncs": 1, "launches": 4, "peak_bytes": 120 + 240 + 4},
    "x[mask]": {"syncs": 1, "launches": 4, "peak_bytes": 120 + 240 + 4},
    # Four kernels, a fifth for two dimensions; a sum for the one block of values, 4 + 8 bytes.
    "torch.nonzero_static(m, size=3)": {"syncs": 0, "launches": 5, "peak_bytes": 3 * 16 + 12},
    # The value goes to the host, and comes back as an argument.
    "four.masked_fill_(truths, value)": {"syncs": 1, "d2h_bytes": 4, "launches": 1},
    "four.index_fill_(0, index, value)": {"syncs": 1, "d2h_bytes": 4, "launches": 1},
    "four.index_fill_(0, index[:0], value)": {"syncs": 1, "launches": 0},
    "four.masked_fill_(truths, host_value)": {"syncs": 0, "h2d": 0, "launches": 1},
    "four.masked_fill(truths, 1.0)": {"launches": 1, "d2d": 1, "d2d_bytes": 16},
    # 3 positions along each dimension meet in 9 pairs of 8 bytes each, which are written out; 9 floats.
    "wide[index[:, None], index]": {"launches": 2 + 1, "peak_bytes": 72 + 72 + 36},
    # 3 positions of 32 bits become 3 of 64; 3 rows of 6 floats.
    "wide[index.int()]": {"launches": 1 + 1 + 1, "peak_bytes": 12 + 24 + 72},
    # 2 x 3 positions with gaps are written out; then as many rows of 6 floats.
    "F.embedding(places[:, 1:], wide)": {"launches": 1 + 1, "peak_bytes": 48 + 144},
    "F.embedding(places, wide)": {"launches": 1, "peak_bytes": 192},
    # The least and the largest of the positions are read.
    "torch.searchsorted(four, four, sorter=order)": {"syncs": 2, "d2h_bytes": 16, "launches": 2},
    "torch.searchsorted(four, four)": {"syncs": 0, "launches": 1},
}
MADE_OF_NUMBERS = {
    # A number becomes a tensor of 4 bytes, in the type of the result, by a fill; 4 results.
    "torch.where(truths, four, 1.0)": {"launches": 1 + 1, "peak_bytes": 4 + 16},
    "torch.where(truths, 1.0, 2.0)": {"launches": 2 + 1, "peak_bytes": 4 + 4 + 16},
    # What is chosen from is converted first.
    "torch.where(truths, four, order)": {"launches": 1 + 1, "peak_bytes": 16 + 16},
    "torch.where(truths, host_value, host_value)": {"launches": 1, "syncs": 2, "h2d": 2, "h2d_bytes": 8},
    # A number has 8 bytes, and 4 once it has the type of what is searched; one position.
    "torch.bucketize(0.5, four)": {"launches": 1 + 1 + 1, "peak_bytes": 8 + 4 + 8},
    "torch.searchsorted(order, 1)": {"launches": 1 + 1, "peak_bytes": 8 + 8},
    # Every second value is copied out: 2 floats, 2 positions.
    "torch.bucketize(four[::2], four)": {"launches": 1 + 1, "peak_bytes": 8 + 16},
    # A double, and the result; any power of 1 is a fill.
    "2.0 ** four": {"launches": 1 + 1, "peak_bytes": 8 + 16},
    "1.0 ** four": {"launches": 1, "peak_bytes": 16},
    # Compared 4 times, any; the answer is copied to the result of 1 byte.
    "torch.isin(1.0, four)": {"launches": 1 + 3, "peak_bytes": 8 + 1 + 4 + 1},
}
MADE_OF_PARTS = {
    # Each dimension is rolled on its own, and the one before kept.
    "wide.roll((1, 1), (0, 1))": {"launches": 2, "peak_bytes": 192},
    "wide.mT.roll(1, 0)": {"launches": 2, "peak_bytes": 192},
    # 4 x 8 floats are filled, and 4 rows of 6 written into them; 5 rows, of which 4 are a run of bytes.
    "F.pad(wide, (1, 1))": {"launches": 2, "d2d": 0, "peak_bytes": 128},
    "F.pad(wide, (0, 0, 0, 1))": {"launches": 1, "d2d": 1, "peak_bytes": 120},
    "F.pad(wide, (-1, -1))": {"launches": 1, "peak_bytes": 64},
    "wide.repeat(2, 1)": {"launches": 1, "d2d": 0, "peak_bytes": 192},
    "wide.repeat(1, 1)": {"launches": 0, "d2d": 1, "peak_bytes": 96},
    # 4 integers on the diagonal are widened to 8 bytes, and added up to 8.
    "whole.trace()": {"launches": 2, "peak_bytes": 32 + 8},
    "wide.argmax()": {"launches": 1, "peak_bytes": 8},
    "wide.mT.argmax()": {"launches": 2, "peak_bytes": 96 + 8},
    # Comparisons of a byte become integers of 8 to be added up.
    "torch.count_nonzero(x)": {"launches": 3, "peak_bytes": 100 + 800 + 8},
    # amax; abs, eq, masked_fill; sub, exp; sum; log, add: 5 maxima, 20 exponentials, 5 results.
    "m.logsumexp(0)": {"launches": 9, "peak_bytes": 120},
    # Drawn, a sum for each of 4 rows, divided.
    "torch._sample_dirichlet(wide)": {"launches": 3, "peak_bytes": 96 + 16},
    # The mean of 20 losses of 4 bytes, in memory of as many, or without a mean the losses.
    "F.mse_loss(m, m + 0)": {"launches": 3, "peak_bytes": 80 + 160},
    "F.mse_loss(m, m, reduction='none')": {"launches": 1, "peak_bytes": 80},
    # 25 blocks: 100 bytes and a counter.
    "F.mse_loss(many, many)": {"launches": 2, "peak_bytes": 2 * 800_000 + 104},
    # The losses, their product with the weights, the mean, which is copied; 4 bytes for it beside.
    "F.binary_cross_entropy(wide, wide, weight=wide)": {"launches": 3, "d2d": 1, "peak_bytes": 96 + 4},
    # Rows that are transposed are copied first.
    "wide.softmax(1)": {"launches": 1, "peak_bytes": 96},
    "wide.t().log_softmax(1)": {"launches": 2, "peak_bytes": 192},
    # The product of gradient and result, then one kernel; of log_softmax the sum is of the gradient itself.
    "torch.ops.aten._softmax_backward_data(x, y, 0, x.dtype)": {"launches": 2, "peak_bytes": 800},
    "torch.ops.aten._log_softmax_backward_data(x, y, 0, x.dtype)": {"launches": 1, "peak_bytes": 400},
    # 24 floats are allocated, then 60 for 15 blocks of 4, into which the 96 bytes are copied.
    "F.unfold(wide[None, None], 2)": {"launches": 1, "d2d_bytes": 96, "peak_bytes": 96 + 240},
    "F.logsigmoid(x)": {"launches": 1, "allocations": 1, "peak_bytes": 400},
    "single.max(0)": {"launches": 1, "d2d_bytes": 4},
    # Moments, factor and offset of each channel, the result; mean and deviation of 2 x 2 groups.
    "F.group_norm(image, 2, ones, ones)": {"launches": 3, "peak_bytes": 96 + 2 * 16 + 2 * 32},
    "F.group_norm(image, 2)": {"launches": 2, "peak_bytes": 96 + 2 * 16},
    # Rows of whole vectors of 4 take one kernel, others two.
    "F.layer_norm(twelve, (8,))": {"launches": 1, "allocations": 3},
    "F.layer_norm(wide, (6,))": {"launches": 2, "allocations": 3},
    "F.layer_norm(twelve.double(), (8,))": {"launches": 1 + 2},
    "torch.normal(four, 2.0)": {"syncs": 0, "launches": 2, "peak_bytes": 32},
}
VIEWS = {
    # Bytes of the result's type, a kernel that converts the others.
    "torch.cat([x[:5], halves, x[:0]])": {"launches": 1, "d2d": 1, "d2d_bytes": 20},
    "torch.cat([x[:5]])": {"launches": 0, "d2d": 1, "d2d_bytes": 20},
    "torch.stack([single] * 130)": {"launches": 2, "d2d": 0},
    "torch.cat([x[:14:2]] * 65)": {"launches": 2, "d2d": 0},
    # A batch of 128 without elements is skipped only before the first that has some.
    "torch.cat([x[:0]] * 128 + [x[:5]] * 10 + [x[:0]] * 128)": {"launches": 2},
    # Zeros of 48 bytes; a row is copied as bytes, a column and every other row by a kernel.
    "torch.autograd.grad(row, leaf, of_row)": {"launches": 1, "d2d_bytes": 16, "peak_bytes": 48},
    "torch.autograd.grad(column, leaf, of_column)": {"launches": 2, "d2d": 0},
    "torch.autograd.grad(steps, leaf, of_steps)": {"launches": 2, "d2d": 0},
    # The copy of 64 bytes first, then the part: a row as bytes, a diagonal by a kernel.
    "square.select_scatter(ones, 0, 1)": {"launches": 0, "d2d": 2, "d2d_bytes": 80},
    "square.diagonal_scatter(ones)": {"launches": 1, "d2d": 1, "d2d_bytes": 64},
    "square.as_strided_scatter(ones, (4,), (5,))": {"launches": 1, "d2d": 1},
    "square.slice_scatter(ones.view(4, 1), 1, 0, 1)": {"launches": 1, "d2d": 1},
    "torch.pixel_shuffle(square.view(1, 4, 2, 2), 2)": {"launches": 1, "allocations": 1},
    "square.unsqueeze_(0).squeeze_().t_().detach_()": {"launches": 0, "allocations": 0},
}
COPIES = {
    # A blocking copy waits once, from pinned memory too; another may block only where memory is pageable.
    "host.to('cuda')": {"h2d": 1, "h2d_bytes": 40, "stream_syncs": 1, "implicit_syncs": 0},
    "pinned.to('cuda')": {"h2d": 1, "h2d_bytes": 40, "stream_syncs": 1, "implicit_syncs": 0},
    "host.to('cuda', non_blocking=True)": {"syncs": 0, "implicit_syncs": 1},
    "pinned.to('cuda', non_blocking=True)": {"syncs": 0, "implicit_syncs": 0},
    # Types are converted on the host, or on the device by one kernel, where 80 bytes arrive beside 40.
    "doubles.to('cuda', torch.float32)": {"h2d_bytes": 40, "launches": 0, "allocations": 1, "peak_bytes": 40},
    "pinned_doubles.to('cuda', torch.float32, non_blocking=True)": {
        "h2d_bytes": 80,
        "launches": 1,
        "allocations": 2,
        "peak_bytes": 120,
    },
    # What is scattered is gathered first; a transposed matrix is one run of bytes.
    "column_of_two.cpu()": {"launches": 1, "peak_bytes": 40, "d2h_bytes": 40, "syncs": 1},
    "m.t().cpu()": {"launches": 0, "allocations": 0, "d2h_bytes": 80},
    "m.tolist()": {"d2h": 1, "d2h_bytes": 80, "syncs": 1},
    # Within the device dense memory of one type is copied as bytes, anything else by a kernel.
    "(m.clone(), torch.empty_like(m).copy_(m))": {"d2d": 2, "d2d_bytes": 160, "launches": 0},
    "(m.t().contiguous(), m.to(torch.float16))": {"d2d": 0, "launches": 2},
    "torch.empty((0, 3)).to('cuda').cpu()": {"allocations": 0, "h2d": 0, "d2h": 0, "syncs": 0},
    # Numbers are one copy; values of the device among them are read one by one.
    "torch.tensor([1.0, 2.0], device='cuda')": {"h2d": 1, "syncs": 1},
    "torch.tensor([x[0], x[1]], device='cuda')": {"d2h": 2, "h2d": 1, "syncs": 3},
}
# A kernel reads one type: of another, 1000 elements are converted to the result's before they are added up,
# to 8 bytes each. Halves add up in single precision as they are read. Whether any is set is asked as it is.
SUMS = {
    "thousand.bool().sum()": {"launches": 1 + 2, "peak_bytes": 1000 + 8000 + 8},
    "thousand.int().sum()": {"launches": 1 + 2, "peak_bytes": 4000 + 8000 + 8},
    "thousand.long().sum()": {"launches": 1 + 1, "peak_bytes": 8000 + 8},
    "thousand.sum(dtype=torch.float64)": {"launches": 2, "peak_bytes": 8000 + 8},
    "thousand.sum()": {"launches": 1, "peak_bytes": 4},
    "thousand.half().sum(dtype=torch.float32)": {"launches": 1 + 1, "peak_bytes": 2000 + 4},
    "thousand.half().sum(dtype=torch.float64)": {"launches": 1 + 2, "peak_bytes": 2000 + 8000 + 8},
    "thousand.bfloat16().sum()": {"launches": 1 + 1, "peak_bytes": 2000 + 2},
    "thousand.any()": {"launches": 1, "peak_bytes": 1},
    # float32, bool and int64, each in a block of 512 bytes.
    "[x.sum(), x.any(), x.argmax()]": {"peak_bytes": 4 + 1 + 8, "peak_allocated_bytes": 3 * 512},
    # abs, 4 bytes an element, and eq, 1 byte, both at once; any, and one read.
    "torch.isinf(thousand).any().item()": {"launches": 3, "syncs": 1, "peak_bytes": 5000},
    # Each of 512 threads would read 2048 values, which is more than 255. At 16 values a thread that is work
    # for 128 blocks: 4 bytes of each and a counter.
    "million.sum()": {"launches": 1, "allocations": 3, "peak_bytes": 4 + 4 * 128 + 4},
    # 300 inputs of 40 bytes, 128 of them a kernel, and the result alone.
    "torch.cat(parts)": {"peak_bytes": 12_000, "allocations": 1, "launches": 3},
    "torch.stack(parts)": {"peak_bytes": 12_000, "allocations": 1, "launches": 3},
    # 2 results and 2 tensors x 3 chunks of 4 bytes; clear, walk, add up.
    "torch._foreach_norm(chunks)": {"peak_bytes": 2 * 4 + 2 * 3 * 4, "allocations": 3, "launches": 3},
}
# As an H200 did on torch 2.11, which recorded 19,958 samples of operators.
RECORDED = {
    # Whole numbers are rounded already: copied, or left.
    "order.floor()": {"launches": 0, "d2d": 1, "d2d_bytes": 32},
    "order.nan_to_num()": {"launches": 0, "d2d": 1},
    "order.trunc_()": {"launches": 0, "d2d": 0},
    "torch._foreach_round([order, order])": {"launches": 0, "d2d": 2},
    "four.conj_physical_()": {"launches": 0},
    # Side by side go sums and products of whole numbers, little else.
    "torch._foreach_add([order, order], 1)": {"launches": 1},
    "torch._foreach_sign([order, order])": {"launches": 2},
    "torch._foreach_addcmul([order, order], [order, order], [order, order])": {"launches": 2},
    # Filled, overwritten, reduced; 8 bytes of each and of the partial results.
    "torch._foreach_max([order, order])": {"launches": 3, "allocations": 3, "peak_bytes": 32},
    # 32 bytes of complex numbers, whose real parts become 16; one is copied as bytes.
    "waves.abs()": {"launches": 2, "peak_bytes": 32 + 16},
    "waves[:1].angle()": {"launches": 1, "d2d": 1, "allocations": 2},
    "torch.linalg.vector_norm(waves[:1])": {"launches": 1, "d2d": 1},
    # Of the real and of the imaginary parts, and their sum; then its root, and the complex mean of 8 bytes.
    "waves.var()": {"launches": 3, "allocations": 3, "peak_bytes": 12},
    "torch.std_mean(waves)": {"launches": 5, "allocations": 6, "peak_bytes": 28},
    "waves.view(2, 2).renorm(2, 0, 1)": {"allocations": 3, "peak_bytes": 2 * 4 + 2 * 8 + 32},
    # Elements that lie apart evenly are a row as they are; a matrix that is transposed is copied.
    "x[::2].argmax()": {"launches": 1, "peak_bytes": 8},
    "wide.mT.max()": {"launches": 2, "peak_bytes": 96 + 4},
    # Probabilities become floats: 3 halves, and 3 of 4 bytes.
    "torch.bernoulli(halves)": {"launches": 2, "peak_bytes": 6 + 12},
    # The clone, and a result that grows to it.
    "torch.squeeze_copy(four, out=torch.empty(0, device='cuda'))": {"allocations": 2, "d2d": 2},
    # One tensor is one run of bytes, channels last too; to lay it out so takes a kernel.
    "torch.cat([image[None].to(memory_format=torch.channels_last)])": {"launches": 1, "d2d": 1},
    # A base of another type is converted: 4 results of 4 bytes, of 8.
    "order ** 0.5": {"launches": 2, "peak_bytes": 32},
    "truths ** 2": {"launches": 2, "peak_bytes": 64},
    "torch.count_nonzero(truths)": {"launches": 2},
    # Of 25 blocks 8 bytes, as of what is read, and a counter.
    "many.double().all()": {"allocations": 4, "peak_bytes": 1_600_000 + 1 + 25 * 8 + 4},
    # Result, ones as large as it and as the source, a mask of a byte an element, all at once.
    "four.scatter_reduce(0, order, four, 'mean')": {"launches": 1 + 6, "d2d": 2, "peak_bytes": 3 * 16 + 4},
    # The remainder; inputs and targets become dense; zeros, and one kernel.
    "torch.ops.aten.nll_loss_backward(x[:5], m.mT, (ten % 4)[::2], None, 0, -100, single)": {
        "launches": 1 + 2 + 2
    },
    # An exclusive or, three kernels that search, and no place to write to.
    "four.index_put_((truths ^ truths,), value)": {"launches": 1 + 3, "syncs": 1},
    # Converted on the device, what has gaps becomes dense at once.
    "column_of_two.to('cpu', torch.float64, non_blocking=True)": {"launches": 1, "allocations": 1},
}
COSTS = RECORDED | COPIES | SUMS | SORTING | READS | INDEXING | MADE_OF_NUMBERS | MADE_OF_PARTS | VIEWS


@pytest.mark.parametrize(("code", "numbers"), COSTS.items(), ids=COSTS)
def test_a_call_costs_what_its_rule_says(
    shared_gpu: SimulatedCuda, code: str, numbers: dict[str, int]
) -> None:
    """Nothing is unknown, and each of these numbers is right."""
    names: dict[str, Any] = {"torch": torch}
    exec(statements_for(code, NAMES), names)  # noqa: S102 - the code is ours
    with shared_gpu.measure() as m:
        result = eval(code, names)  # noqa: S307 - as above
    del result
    assert (numbers, ()) == ({metric: getattr(m, metric) for metric in numbers}, m.unknown)
