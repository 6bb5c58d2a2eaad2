"""Patterns of training code with what they must cost on CUDA: values, indices and copies."""

from tests.gpu.pattern import row

SCALAR = "ATen/native/cuda/CUDAScalar.cu: one value is copied to pinned memory, and the stream waited for"
COPY = "ATen/native/cuda/Copy.cu: a blocking copy waits, from and to pinned memory too"

row("value.item()", SCALAR, waits=1, d2h=1, launches=0, allocations=0)
row("float(value)", SCALAR, waits=1, d2h=1, launches=0, allocations=0)
row("if value > 0: pass", f"{SCALAR}; the comparison is a kernel", waits=1, d2h=1, launches=1, allocations=1)
row("rows.cpu()", COPY, waits=1, d2h=1, launches=0, allocations=0)
row("floats.to('cuda')", COPY, waits=1, h2d=1, launches=0, allocations=1)
row("pinned.to('cuda', non_blocking=True)", COPY, h2d=1, launches=0, allocations=1)
row(
    "x[mask]",
    "ATen/native/IndexingUtils.h: a mask becomes indices by nonzero, whose length is read",
    waits=1,
    d2h=1,
)
row(
    "x[host_mask]",
    "ATen/native/IndexingUtils.h: the indices of a host mask are pinned and copied without a wait",
    h2d=1,
    launches=1,
    allocations=2,
)
row("x[index]", "ATen/native/cuda/IndexKernel.cu: one gather", launches=1, allocations=1)
row("rows + rows", "ATen/native/cuda/CUDALoops.cuh: one elementwise kernel", launches=1, allocations=1)
