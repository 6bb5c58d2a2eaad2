"""Rows that index: by masks, by integers, by what is on the host, and the functions of the same family."""

# A table: a row may take two lines, and is not wrapped further.
# fmt: off

from tests.gpu.pattern import row

NONZERO = "ATen/native/cuda/Nonzero.cu: how many there are is read"
MASK = "ATen/native/IndexingUtils.h: a mask becomes indices by nonzero, whose count is read"
HOST_MASK = "ATen/native/IndexingUtils.h: indices of a host mask are pinned and copied without a wait"
HOST = "ATen/native/IndexingUtils.h: integers of the host are copied, with a wait"
KERNEL = "ATen/native/cuda/IndexKernel.cu: one kernel"
SETITEM = "torch/csrc/autograd/python_variable_indexing.cpp: a number stays on the host"
FILL = "ATen/TensorIndexing.h: copy_to fills by a number of the host"
SCATTER = "ATen/native/cuda/ScatterGatherKernel.cu: one kernel"
READ_INDEX = "ATen/TensorIndexing.h: an index without dimensions is read"
ONE_VIEW = "ATen/native/Copy.cpp, copy_impl: what is one view with its source is not copied"
TRUTH = "ATen/TensorIndexing.h: a truth value is read, and becomes an index by a fill"

# Views that are written back to themselves.
row("rows[:, 0] += 1", ONE_VIEW, launches=1, allocations=0)
row("rows[:, 1:3] *= 0.5", ONE_VIEW, launches=1, allocations=0)
row("x[::2] -= 1", ONE_VIEW, launches=1, allocations=0)
row("rows[0] += 1", ONE_VIEW, launches=1, allocations=0)
row("rows[:, 0].copy_(rows[:, 0])", ONE_VIEW, launches=0, allocations=0)
row("rows[:, 0] = rows[:, 1]", "ATen/native/cuda/Copy.cu: of two views, a kernel", launches=1, allocations=0)

# Masks on the device.
row("x[value > -1]", f"gt; {TRUTH}; one kernel", waits=1, d2h=1, launches=3, allocations=3)
row("x[mask]", MASK, waits=1, d2h=1, d2d=None)
row("rows[masks]", MASK, waits=1, d2h=1, d2d=None)
row("rows[rows[:, 0] > 0.5]", MASK, waits=1, d2h=1, d2d=None)
row("x[mask] = 1.0", f"{SETITEM}, and fills by the mask", launches=1, allocations=0)
row("rows[masks] = 0", f"{SETITEM}, and fills by the mask", launches=1, allocations=0)
row("x[mask] = value", MASK, waits=1, d2h=1, d2d=None)
row("x[mask] += 1", f"{MASK}, for each of the two", waits=2, d2h=2, d2d=None)
row("x[~mask].sum().item()", f"{MASK}; then a read", waits=2, d2h=2, d2d=None)
row("x.masked_select(mask)", MASK, waits=1, d2h=1, d2d=None)
row("mask.nonzero()", NONZERO, waits=1, d2h=1)
row("masks.nonzero(as_tuple=True)", NONZERO, waits=1, d2h=1)
row("torch.argwhere(mask)", NONZERO, waits=1, d2h=1)
row("torch.where(mask)", NONZERO, waits=1, d2h=1)
row("torch.nonzero_static(mask, size=4)", "ATen/native/cuda/Nonzero.cu: without a read", waits=0, d2d=None)
row("x.masked_fill_(mask, 1.0)", "ATen/native/cuda/Indexing.cu: one kernel", launches=1, allocations=0)
row("x.masked_fill(mask, 1.0)", "ATen/native/TensorAdvancedIndexing.cpp: a clone, then one kernel", d2d=1,
    launches=1, allocations=1)
row("x.masked_fill_(mask, value)", "ATen/native/cuda/Indexing.cu: the value is read", waits=1, d2h=1,
    launches=1, allocations=0)
row("x.masked_scatter_(mask, x.clone())", "ATen/native/cuda/IndexKernel.cpp: a prefix sum", d2d=None)

# Masks on the host.
row("x[host_mask]", HOST_MASK, h2d=1, launches=1, allocations=2)
row("x[host_mask] = 2.0", f"{HOST_MASK}; the number is copied, with a wait", waits=1, h2d=2, launches=1,
    allocations=2)
row("x[host_mask] = value", HOST_MASK, h2d=1, launches=1, allocations=1)
row("rows[floats > 0]", f"{HOST_MASK}; two columns of one copy", h2d=1, launches=1, allocations=2)
row("rows[None][floats[None] > 0]", f"{HOST_MASK}; three columns of one copy", h2d=1, launches=1,
    allocations=2)
row("rows[host_mask[:4]]", HOST_MASK, h2d=1, launches=1, allocations=2)
row("rows[mask[:4], 1] = 0.0", f"{SETITEM}, and fills a column by the mask", launches=1, allocations=0)
row("rows[:, masks[0]] = 0.0", f"{SETITEM}, and fills by the mask", launches=1, allocations=0)
row("x[mask] = torch.tensor([1.0])", f"{SETITEM} of any shape", launches=1, allocations=0)
SPREAD = "ATen/native/TensorAdvancedIndexing.cpp: a contiguous clone of what is broadcast, then one kernel"
row("rows[:1].masked_fill(masks, 0.0)", SPREAD, launches=2, allocations=1)
WHERE = "ATen/native/TensorCompare.cpp: a tensor of the host is copied, with a wait"
row("torch.where(mask, x, torch.tensor(0.0))", WHERE, waits=1, h2d=1, launches=1, allocations=2)

# Integers.
row("rows[one, index]", f"{READ_INDEX}; then {KERNEL}", waits=1, d2h=1, launches=1, allocations=1)
row("x[[0, 1]] = 0.0", f"{HOST}, as is the number", waits=2, h2d=2, launches=1, allocations=2)
row("x[index]", KERNEL, launches=1, allocations=1)
row("rows[:, index]", KERNEL, launches=1, allocations=1)
row("rows[index, index]", KERNEL, launches=1, allocations=1)
row("rows[index] = 0.5", f"{SETITEM}, and is copied", waits=1, h2d=1, launches=1, allocations=1)
row("x[index] = y", KERNEL, launches=1, allocations=0)
row("x[index] += y", f"{KERNEL} for each of the two, and an addition in place", launches=3, allocations=1)
row("x[host]", HOST, waits=1, h2d=1, launches=1, allocations=2)
row("x[host] = y", HOST, waits=1, h2d=1, launches=1, allocations=1)
row("x[[0, 1]]", HOST, waits=1, h2d=1, launches=1, allocations=2)
row("rows[[0, 1], [2, 3]]", f"{HOST}; two lists", waits=2, h2d=2, launches=1, allocations=3)
row("x[one]", READ_INDEX, waits=1, d2h=1, launches=0, allocations=0)
row("x[one:]", READ_INDEX, waits=1, d2h=1, launches=0, allocations=0)
row("x[one] = value", f"{READ_INDEX}; then a copy", waits=1, d2h=1, d2d=1, launches=0, allocations=0)
row("x[0] = 1.0", "ATen/TensorIndexing.h: copy_to copies what has the same sizes", waits=1, h2d=1, launches=0)
row("rows[0] = 1.0", FILL, launches=1, allocations=0)
row("rows[:, 1:3] = 0", FILL, launches=1, allocations=0)
row("x[:] = 0", FILL, launches=1, allocations=0)
row("rows[0] = rows[1]", "ATen/TensorIndexing.h: copy_to; bytes", d2d=1, launches=0, allocations=0)
row("rows[..., 0] = value", "ATen/TensorIndexing.h: copy_to; broadcast", launches=1, allocations=0)
row("x.index_put_((index,), y, accumulate=True)", "ATen/native/cuda/Indexing.cu: CUB sorts, without a wait",
    d2d=None)
row("x.index_select(0, index)", "ATen/native/cuda/Indexing.cu: one kernel", launches=1, allocations=1)
row("x.index_add_(0, index, y)", "ATen/native/cuda/Indexing.cu: one kernel", launches=1, allocations=0)
row("x.index_copy_(0, index, y)", "ATen/native/cuda/IndexKernel.cu: one kernel", launches=1, allocations=0)
row("x.index_fill_(0, index, 1.0)", "ATen/native/cuda/IndexKernel.cu: one kernel", launches=1, allocations=0)
row("x.index_fill_(0, index, value)", "ATen/native/TensorAdvancedIndexing.cpp: the value is read", waits=1,
    d2h=1, launches=1, allocations=0)
row("x.gather(0, index)", SCATTER, launches=1, allocations=1)
row("rows.gather(1, classes[:, None])", SCATTER, launches=1, allocations=1)
row("x.scatter_(0, index, y)", SCATTER, launches=1, allocations=0)
row("x.scatter_add_(0, index, y)", SCATTER, launches=1, allocations=0)
row("x.scatter_reduce_(0, index, y, 'amax')", SCATTER, launches=1, allocations=0)
row("x.scatter_(0, index, 1.0)", SCATTER, launches=1, allocations=0)
COUNTED = "TensorAdvancedIndexing.cpp: two copies, ones of both sizes, their sum, eq, masked_fill_, div_"
row("x.scatter_reduce(0, index, y, 'mean')", COUNTED, d2d=2, launches=7, allocations=4)
ANEW = "TensorAdvancedIndexing.cpp, cuda/Indexing.cu: what the index names begins anew, by a fill"
row("x.scatter_reduce_(0, index, y, 'amax', include_self=False)", ANEW, launches=2, allocations=0)
row("x.index_reduce_(0, index, y, 'amax', include_self=False)", ANEW, launches=2, allocations=0)
row("x.take(index)", KERNEL, launches=1, allocations=1)
row("x.put_(index, y)", KERNEL, launches=1, allocations=0)
row("torch.take_along_dim(x, index)", SCATTER, launches=1, allocations=1)

# Counting and repeating by index.
row("F.one_hot(index)", "ATen/native/Onehot.cpp: the largest class is read", waits=1, d2h=1)
PARSED = "torch/csrc/utils/python_arg_parser.cpp: the number is read; zeros, then a scatter"
row("F.one_hot(index, three)", PARSED, waits=1, d2h=1, launches=2, allocations=1)
row("F.one_hot(index, 3)", "ATen/native/Onehot.cpp: zeros, then a scatter", launches=2, allocations=1)
row("y.repeat_interleave(index)", "ATen/native/Repeat.h: signs and sum are read", waits=2, d2h=2)
row("y.repeat_interleave(index, output_size=3)", "ATen/native/Repeat.h: no read")
row("y.repeat_interleave(2)", "ATen/native/Repeat.cpp: expand, then one copy", launches=1, allocations=1)
row("torch.searchsorted(y, x, sorter=index)", "ATen/native/BucketizationUtils.h: both ends", waits=2, d2h=2)
row("torch.multinomial(rows, 1)", "ATen/native/Distributions.cpp: _assert_async, no wait")
row("F.embedding(index, rows)", "ATen/native/Embedding.cpp: index_select", launches=1, allocations=1)
row("F.embedding_bag(index, rows, classes[:1])", "ATen/native/cuda/EmbeddingBag.cu: no wait")
