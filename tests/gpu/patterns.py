"""Rows on tensors: values that the host reads, copies, factories, elementwise operations and reductions."""

# A table: a row may take two lines, and is not wrapped further.
# fmt: off

from tests.gpu.pattern import row

SCALAR = "ATen/native/cuda/CUDAScalar.cu: one value is copied to pinned memory, and the stream waited for"
COPY = "ATen/native/cuda/Copy.cu: a blocking copy waits, from and to pinned memory too"
ASYNC = "ATen/native/cuda/Copy.cu: a copy that does not block; the profiler shows no wait"
STAGED = "ATen/native/cuda/Copy.cu: copy_requires_temporaries; where it blocks, the host converts"
WITHIN = "ATen/native/cuda/Copy.cu: bytes where both are dense alike, else one kernel"
FORMAT = "torch/_tensor.py: __format__ of a tensor without dimensions is that of item()"
PARSER = "torch/csrc/utils/python_arg_parser.cpp: a number that is given as a device tensor is read"
NEW = "torch/csrc/utils/tensor_new.cpp: data is made on the host and copied, with a wait"
FILLED = "ATen/native/TensorFactories.cpp: an allocation, then one kernel that fills"
RANDOM = "ATen/native/cuda/DistributionTemplates.h: one kernel; the generator's state is the host's"
LOOPS = "ATen/native/cuda/CUDALoops.cuh: one kernel"
REDUCE = "ATen/native/cuda/Reduce.cuh: one kernel; a small one needs no workspace"
SHARED = "ATen/native/cuda/Reduce.cuh: blocks that share a result have a buffer and counters"
VIEW = "ATen/native/TensorShape.cpp: only sizes and strides change"

# Values that the host reads.
row("value.item()", SCALAR, waits=1, d2h=1, launches=0, allocations=0)
row("float(value)", SCALAR, waits=1, d2h=1, launches=0, allocations=0)
row("int(one)", SCALAR, waits=1, d2h=1, launches=0, allocations=0)
row("bool(value)", SCALAR, waits=1, d2h=1, launches=0, allocations=0)
row("value.is_nonzero()", SCALAR, waits=1, d2h=1, launches=0, allocations=0)
row("math.isnan(value)", SCALAR, waits=1, d2h=1, launches=0, allocations=0)
row("range(three)", SCALAR, waits=1, d2h=1, launches=0, allocations=0)
row("[0, 1, 2, 3][three]", "torch/_tensor.py: __index__ reads", waits=1, d2h=1, launches=0, allocations=0)
row("f'{value:.2f}'", FORMAT, waits=1, d2h=1, launches=0, allocations=0)
row("format(value)", FORMAT, waits=1, d2h=1, launches=0, allocations=0)
row("if value > 0: pass", f"{SCALAR}; the comparison is a kernel", waits=1, d2h=1, launches=1, allocations=1)
row("assert (x >= 0).all()", f"{SCALAR}; two kernels before", waits=1, d2h=1, launches=2, allocations=2)
row("x.max().item()", f"{SCALAR}; one kernel before", waits=1, d2h=1, launches=1, allocations=1)
row("max(y)", f"{SCALAR}; Python compares twice", waits=2, d2h=2, launches=2, allocations=2)
row("sum(y)", "Python adds 0 and three views", launches=3, allocations=3)
row("[float(each) for each in y]", f"{SCALAR}, three times", waits=3, d2h=3, launches=0, allocations=0)
row("x.tolist()", "torch/csrc/utils/tensor_list.cpp: to the CPU at once", waits=1, d2h=1, launches=0)
row("rows.tolist()", "torch/csrc/utils/tensor_list.cpp: to the CPU at once", waits=1, d2h=1, launches=0)
row("repr(classes)", "torch/_tensor_str.py: each integer, then tolist()", waits=5, d2h=5)
row("repr(whole)", "torch/_tensor_str.py: each integer, then tolist() of each row", waits=28, d2h=28)
row("value in x", "torch/_tensor.py: (x == value).any().item()", waits=1, d2h=1, launches=2, allocations=2)
row("torch.equal(x, x.clone())", "ATen/native/cuda/Equal.cpp: eq, all and a read", waits=1, d2h=1, d2d=1,
    launches=2)
row("torch.allclose(x, x)", "ATen/native/TensorCompare.cpp: all().item()", waits=1, d2h=1)
row("(x.any(), x.all())", REDUCE, launches=2, allocations=2)

# Copies between host and device.
row("rows.cpu()", COPY, waits=1, d2h=1, launches=0, allocations=0)
row("rows.to('cpu')", COPY, waits=1, d2h=1, launches=0, allocations=0)
row("floats.to('cuda')", COPY, waits=1, h2d=1, launches=0, allocations=1)
row("floats.cuda()", COPY, waits=1, h2d=1, launches=0, allocations=1)
row("floats.copy_(rows)", COPY, waits=1, d2h=1, launches=0, allocations=0)
row("rows.copy_(floats)", COPY, waits=1, h2d=1, launches=0, allocations=0)
row("pinned.copy_(rows)", COPY, waits=1, d2h=1, launches=0, allocations=0)
row("pinned.to('cuda')", COPY, waits=1, h2d=1, launches=0, allocations=1)
row("rows.detach().cpu()", COPY, waits=1, d2h=1, launches=0, allocations=0)
row("weights.detach().to('cpu', copy=True)", COPY, waits=1, d2h=1, launches=0, allocations=0)
row("rows.t().cpu()", f"{COPY}; the strides are kept", waits=1, d2h=1, launches=0, allocations=0)
row("pinned.to('cuda', non_blocking=True)", ASYNC, h2d=1, launches=0, allocations=1)
row("floats.to('cuda', non_blocking=True)", ASYNC, h2d=1, launches=0, allocations=1)
row("rows.copy_(pinned, non_blocking=True)", ASYNC, h2d=1, launches=0, allocations=0)
row("pinned.copy_(rows, non_blocking=True)", ASYNC, d2h=1, launches=0, allocations=0)
row("floats.copy_(rows, non_blocking=True)", ASYNC, d2h=1, launches=0, allocations=0)
row("rows.to('cpu', non_blocking=True)", "ATen/native/TensorConversions.cpp: the result is pinned", d2h=1,
    launches=0, allocations=0)
row("rows.to('cpu', non_blocking=True); torch.cuda.synchronize()",
    "c10/cuda/CUDAFunctions.cpp: one wait for the device", waits=1, d2h=1, launches=0, allocations=0)
row("rows.to('cpu', torch.float64)", STAGED, waits=1, d2h=1, launches=0, allocations=0)
row("floats.to('cuda', torch.float64)", STAGED, waits=1, h2d=1, launches=0, allocations=1)
row("floats.to('cuda', torch.half)", STAGED, waits=1, h2d=1, launches=0, allocations=1)
row("pinned.to('cuda', torch.float64, non_blocking=True)", STAGED, h2d=1, launches=1, allocations=2)
row("rows.to('cpu', torch.float64, non_blocking=True)", STAGED, d2h=1, launches=1, allocations=1)
row("rows[:, 0].cpu()", STAGED, waits=1, d2h=1, launches=1, allocations=1)
row("rows[:, 0].copy_(floats[:, 0])", STAGED, waits=1, h2d=1, launches=1, allocations=1)
row("floats[:, 0].copy_(rows[:, 0])", STAGED, waits=1, d2h=1, launches=1, allocations=1)
row("rows[1].cpu()", COPY, waits=1, d2h=1, launches=0, allocations=0)
row("floats.fill_(value)", "ATen/native/Fill.cpp: read for the host", waits=1, d2h=1, launches=0)
row("floats.pin_memory()", "ATen/cuda/CachingHostAllocator.cpp: the host alone", launches=0, allocations=0)
row("floats * value.cpu()", f"{COPY}; the rest is the host's", waits=1, d2h=1, launches=0, allocations=0)
row("rows * torch.tensor(2.0)", "ATen/TensorIterator.h: a host number is an argument", launches=1,
    allocations=1)
row("{name: each.cpu() for name, each in {'x': x, 'y': y}.items()}", COPY, waits=2, d2h=2, launches=0)

# Copies within the device.
row("rows.clone()", WITHIN, d2d=1, launches=0, allocations=1)
row("rows.t().clone()", f"{WITHIN}; the strides are kept", d2d=1, launches=0, allocations=1)
row("rows.t().contiguous()", WITHIN, launches=1, allocations=1)
row("rows.contiguous()", "ATen/native/TensorProperties.cpp: itself", launches=0, allocations=0)
row("rows.float()", "ATen/native/TensorConversions.cpp: itself", launches=0, allocations=0)
row("rows.half()", WITHIN, launches=1, allocations=1)
row("rows.to(torch.bfloat16)", WITHIN, launches=1, allocations=1)
row("rows.copy_(half)", WITHIN, launches=1, allocations=0)
row("rows[0].copy_(rows[1])", WITHIN, d2d=1, launches=0, allocations=0)
row("rows[:, 0].copy_(rows[:, 1])", WITHIN, launches=1, allocations=0)
row("rows.copy_(y[0])", f"{WITHIN}; what is broadcast is not dense", launches=1, allocations=0)
row("rows.fill_(value)", "ATen/native/Fill.cpp: copied from the device", launches=1, allocations=0)
row("value.copy_(one)", WITHIN, launches=1, allocations=0)
row("value.clone()", WITHIN, d2d=1, launches=0, allocations=1)
row("rows.reshape(-1)", VIEW, launches=0, allocations=0)
row("rows.t().reshape(-1)", WITHIN, launches=1, allocations=1)
row("rows.expand(2, 4, 6).contiguous()", WITHIN, launches=1, allocations=1)
row("rows.repeat(2, 1)", "ATen/native/TensorShape.cpp: one copy from a broadcast view", launches=1,
    allocations=1)
row("rows.flatten().narrow(0, 0, 3).clone()", WITHIN, d2d=1, launches=0, allocations=1)

# Factories.
row("torch.empty(4, device='cuda')", FILLED, launches=0, allocations=1)
row("torch.zeros(4, device='cuda')", FILLED, launches=1, allocations=1)
row("torch.ones(4, device='cuda')", FILLED, launches=1, allocations=1)
row("torch.full((4,), 2.0, device='cuda')", FILLED, launches=1, allocations=1)
row("torch.scalar_tensor(1.0, device='cuda')", FILLED, launches=1, allocations=1)
row("torch.zeros_like(rows)", FILLED, launches=1, allocations=1)
row("rows.new_zeros(3)", FILLED, launches=1, allocations=1)
row("rows.zero_()", FILLED, launches=1, allocations=0)
row("torch.arange(8, device='cuda')", "ATen/native/cuda/RangeFactories.cu", launches=1, allocations=1)
row("torch.linspace(0, 1, 5, device='cuda')", "ATen/native/cuda/RangeFactories.cu", launches=1, allocations=1)
row("torch.eye(3, device='cuda')", "ATen/native/cuda/TensorFactories.cu: zeros, then its diagonal",
    launches=2, allocations=1)
row("torch.rand(4, device='cuda')", RANDOM, launches=1, allocations=1)
row("torch.randn(4, device='cuda')", RANDOM, launches=1, allocations=1)
row("torch.randint(9, (4,), device='cuda')", RANDOM, launches=1, allocations=1)
row("torch.rand_like(rows)", RANDOM, launches=1, allocations=1)
row("rows.normal_()", RANDOM, launches=1, allocations=0)
row("rows.uniform_()", RANDOM, launches=1, allocations=0)
row("rows.bernoulli_(0.5)", RANDOM, launches=1, allocations=0)
row("torch.bernoulli(rows)", RANDOM, launches=1, allocations=1)
row("rows.exponential_()", RANDOM, launches=1, allocations=0)
row("torch.randperm(20000, device='cuda')", "ATen/native/cuda/Randperm.cu: CUB, without a wait")
row("torch.tensor([1.0, 2.0], device='cuda')", NEW, waits=1, h2d=1, launches=0, allocations=1)
row("torch.tensor(1.0, device='cuda')", NEW, waits=1, h2d=1, launches=0, allocations=1)
row("torch.as_tensor([1, 2], device='cuda')", NEW, waits=1, h2d=1, launches=0, allocations=1)
row("rows.new_tensor([1.0, 2.0])", NEW, waits=1, h2d=1, launches=0, allocations=1)
row("torch.tensor([value, value])", f"{NEW}; each is read first", waits=2, d2h=2, launches=0, allocations=0)
row("torch.tensor([value, value], device='cuda')", f"{NEW}; each is read first", waits=3, h2d=1, d2h=2,
    launches=0, allocations=1)
row("torch.full((2,), value, device='cuda')", PARSER, waits=1, d2h=1, launches=1, allocations=1)
row("torch.zeros(three, device='cuda')", PARSER, waits=1, d2h=1, launches=1, allocations=1)
row("torch.arange(three, device='cuda')", PARSER, waits=1, d2h=1, launches=1, allocations=1)
row("torch.add(x, x, alpha=value)", PARSER, waits=1, d2h=1, launches=1, allocations=1)
row("x.narrow(0, 0, three)", PARSER, waits=1, d2h=1, launches=0, allocations=0)
row("x.view(one, -1)", PARSER, waits=1, d2h=1, launches=0, allocations=0)
row("torch.linspace(value, one, 4, device='cuda')", "ATen/native/RangeFactories.cpp: each end is read",
    waits=2, d2h=2, launches=1, allocations=1)

# Elementwise operations.
row("rows + rows", LOOPS, launches=1, allocations=1)
row("rows.add_(1)", LOOPS, launches=1, allocations=0)
row("rows * value", LOOPS, launches=1, allocations=1)
row("half + rows", f"{LOOPS}, which converts what it loads", launches=1, allocations=1)
row("rows.clamp(0, 1)", LOOPS, launches=1, allocations=1)
row("rows ** 2", LOOPS, launches=1, allocations=1)
row("2 ** rows", "ATen/native/Pow.cpp: the number becomes a device tensor", launches=2, allocations=2)
row("rows.addcmul_(rows, rows, value=0.5)", LOOPS, launches=1, allocations=0)
row("rows.lerp(rows, 0.5)", LOOPS, launches=1, allocations=1)
row("rows.lerp_(rows, value)", LOOPS, launches=1, allocations=0)
row("torch.isnan(rows)", "ATen/native/TensorCompare.cpp: self != self", launches=1, allocations=1)
row("torch.isinf(rows)", "ATen/native/TensorCompare.cpp: abs, eq", launches=2, allocations=2)
row("torch.isfinite(rows)", "ATen/native/TensorCompare.cpp: eq, abs, ne, mul", launches=4, allocations=4)
row("rows.nan_to_num_(0.0)", LOOPS, launches=1, allocations=0)
row("torch.where(mask, x, x)", LOOPS, launches=1, allocations=1)
row("torch.where(mask, x, 0.0)", "ATen/native/TensorCompare.cpp: the number becomes a device tensor",
    launches=2, allocations=2)
row("torch.where(mask, 1.0, 0.0)", "ATen/native/TensorCompare.cpp: as do both", launches=3, allocations=3)
row("rows[:0] + 1", f"{LOOPS}; for no elements none", launches=0, allocations=0)
row("torch.maximum(rows, rows)", LOOPS, launches=1, allocations=1)
row("rows.softmax(-1)", "ATen/native/cuda/SoftMax.cu: one kernel", launches=1, allocations=1)
row("rows.log_softmax(-1)", "ATen/native/cuda/SoftMax.cu: one kernel", launches=1, allocations=1)
row("F.dropout(rows)", "ATen/native/cuda/Dropout.cu: native_dropout, and its mask", launches=1, allocations=2)
row("F.dropout(rows, training=False)", "ATen/native/Dropout.cpp: itself", launches=0, allocations=0)
row("F.gelu(rows)", LOOPS, launches=1, allocations=1)
row("torch.outer(y, y)", LOOPS, launches=1, allocations=1)
row("rows.tril()", "ATen/native/cuda/TriangularOps.cu: one kernel", launches=1, allocations=1)
row("rows.flip(0)", "ATen/native/cuda/TensorTransformations.cu: one kernel", launches=1, allocations=1)
row("rows.roll(1)", "ATen/native/cuda/TensorTransformations.cu: one kernel", launches=1, allocations=1)
row("torch.polar(y, y)", LOOPS, launches=1, allocations=1)
row("torch._assert_async(one)", "ATen/native/cuda/TensorCompare.cu: checked on the device", launches=1)

# Reductions, scans and order.
row("rows.sum()", REDUCE, launches=1, allocations=1)
row("rows.sum(0)", REDUCE, launches=1, allocations=1)
row("rows.mean()", REDUCE, launches=1, allocations=1)
row("rows.max()", REDUCE, launches=1, allocations=1)
row("rows.max(0)", f"{REDUCE}; values and indices", launches=1, allocations=2)
row("rows.amax(0)", REDUCE, launches=1, allocations=1)
row("rows.argmax(-1)", REDUCE, launches=1, allocations=1)
row("rows.std()", REDUCE, launches=1, allocations=1)
row("rows.var(0)", REDUCE, launches=1, allocations=1)
row("torch.var_mean(rows, 0)", REDUCE, launches=1, allocations=2)
row("rows.norm()", REDUCE, launches=1, allocations=1)
row("rows.prod()", REDUCE, launches=1, allocations=1)
row("mask.sum()", "ATen/native/ReduceOps.cpp: truth values become int64 first", launches=2, allocations=2)
ANY_OF_ONE = "ATen/native/ReduceOps.cpp, allany_impl: one element is converted to a truth value and copied"
row("value.any()", ANY_OF_ONE, d2d=1, launches=1, allocations=2)
row("big.sum()", SHARED, launches=1, allocations=3)
row("big.mean()", SHARED, launches=1, allocations=3)
row("big.max()", SHARED, launches=1, allocations=3)
row("big.argmax()", SHARED, launches=1, allocations=3)
row("big.norm()", SHARED, launches=1, allocations=3)
row("big.std()", SHARED, launches=1, allocations=3)
row("torch.aminmax(big)", SHARED, launches=1, allocations=4)
row("big.sum(-1)", f"{SHARED}; here none share", launches=1, allocations=1)
row("rows.logsumexp(0)", "ATen/native/ReduceOps.cpp: amax; abs, eq, masked_fill; sub, exp, sum; log, add",
    launches=9, allocations=5)
row("rows.cumsum(0)", "ATen/native/cuda/ScanUtils.cuh: one kernel", launches=1, allocations=1)
row("x.cumsum(0)", "ATen/native/cuda/ScanUtils.cuh: CUB, which prepares", launches=2, allocations=2)
row("rows.cumprod(1)", "ATen/native/cuda/ScanUtils.cuh: one kernel", launches=1, allocations=1)
row("rows.logcumsumexp(1)", "ATen/native/cuda/ScanUtils.cuh: one kernel", launches=1, allocations=1)
row("rows.cummax(1)", "ATen/native/cuda/ScanUtils.cuh: one kernel", launches=1, allocations=2)
SMALL_SORT = (
    "ATen/native/Sorting.cpp copies the values; ATen/native/cuda/Sort.cpp makes a range, copies it, copies "
    "the values once more, and sorts in place"
)
row("x.sort()", SMALL_SORT, d2d=3, launches=2, allocations=3)
row("x.argsort()", SMALL_SORT, d2d=3, launches=2, allocations=3)
row("rows.sort(dim=-1, descending=True)", f"{SMALL_SORT}; the range is broadcast by a kernel", d2d=2,
    launches=3, allocations=3)
row("big.flatten().sort()", "ATen/native/cuda/SortStable.cu: CUB sorts, without a wait", d2d=None)
row("x.topk(2)", "ATen/native/cuda/TensorTopK.cpp, Sort.cpp: select, then sort", launches=2, allocations=2)
row("rows.topk(1)", "ATen/native/cuda/Sort.cpp: single ones need no sort", launches=1, allocations=2)
row("x.topk(1)", "ATen/native/cuda/TensorTopK.cpp: a single one needs no sort", launches=1, allocations=2)
row("x.kthvalue(2)", "ATen/native/cuda/Sorting.cpp: one kernel", launches=1, allocations=2)
row("x.median()", "ATen/native/cuda/Sorting.cpp: without a wait", d2d=None)
row("rows.median(1)", "ATen/native/cuda/Sorting.cpp: one kernel", launches=1, allocations=2)
row("x.quantile(0.5)", "ATen/native/Sorting.cpp: a number makes no wait", h2d=None, d2d=None, waits=None)
row("x.mode()", "ATen/native/cuda/TensorModeKernel.cpp: one kernel up to 2048", launches=1, allocations=2)
UNIQUE = "ATen/native/cuda/UniqueCub.cu: how many there are is read"
row("index.unique()", UNIQUE, waits=1, d2h=1, d2d=None)
row("index.unique(return_inverse=True, return_counts=True)", UNIQUE, waits=1, d2h=1, d2d=None)
row("mask.unique()", UNIQUE, waits=1, d2h=1, d2d=None)
row("index.unique_consecutive()", UNIQUE, waits=1, d2h=1, d2d=None)
SUMMARY = "ATen/native/cuda/SummaryOps.cu: bounds that are not given are read"
row("index.bincount()", SUMMARY, waits=2, d2h=2)
row("index.to(torch.uint8).bincount()", SUMMARY, waits=1, d2h=1)
row("x.histc(4)", SUMMARY, waits=2, d2h=2)
row("x.histc(4, 0, 1)", SUMMARY, waits=0)
row("torch.searchsorted(y, x)", "ATen/native/cuda/Bucketization.cu: one kernel", launches=1, allocations=1)
row("torch.bucketize(x, y)", "ATen/native/cuda/Bucketization.cu: one kernel", launches=1, allocations=1)
READ_FREEDOM = f"ATen/native/Correlation.cpp, is_scalar_tensor_true: at::equal reads all(); {ANY_OF_ONE}"
row("torch.cov(rows)", READ_FREEDOM, waits=1, d2h=1, d2d=1)
row("torch.corrcoef(rows)", READ_FREEDOM, waits=1, d2h=1, d2d=1)

BOUNDS = "ATen/native/BucketizationUtils.h: a number is a double on the device, then what the bounds are"
row("torch.bucketize(0.5, y)", BOUNDS, launches=3, allocations=3)
row("rows[:0].mean()", "ATen/native/ReduceOps.cpp: of no elements a fill", launches=1, allocations=1)
row("half.sum(dtype=torch.float32)", f"{REDUCE}, and converts as it reads", launches=1, allocations=1)
COUNT = "ATen/native/TensorAdvancedIndexing.cpp, count_nonzero_cuda: truth values are summed as they are"
row("mask.count_nonzero()", COUNT, launches=2, allocations=2)

# Joining and splitting.
CAT = "ATen/native/cuda/Shape.cu: a kernel for each 128 inputs"
row("torch.cat([rows, rows])", CAT, launches=1, allocations=1)
row("torch.cat([rows] * 128)", CAT, launches=1, allocations=1)
row("torch.cat([rows] * 129)", CAT, launches=2, allocations=1)
row("torch.cat([rows])", "ATen/native/cuda/Shape.cu: a single one is copied", d2d=1, launches=0,
    allocations=1)
row("torch.cat([rows, half])", "ATen/native/cuda/Shape.cu: copied one by one", d2d=1, launches=1,
    allocations=1)
row("torch.stack([rows, rows])", CAT, launches=1, allocations=1)
row("torch.stack([value] * 4)", CAT, launches=1, allocations=1)
row("torch.stack([value] * 4).tolist()", f"{CAT}; read once", waits=1, d2h=1, launches=1, allocations=1)
row("(rows.split(2), rows.chunk(2), rows.unbind())", VIEW, launches=0, allocations=0)
row("(rows[1:3], rows[..., 0], rows[::2], rows[None], rows[-1])", VIEW, launches=0, allocations=0)
row("[each.clone() for each in rows.split(2)]", WITHIN, d2d=2, launches=0, allocations=2)
