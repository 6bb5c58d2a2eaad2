"""What is known of CUDA's waits and copies, a row for each call, by source; the simulation counts the same.

A row is the call, then how often the host waits for a stream, copies to the device and back, and may block
without a wait. The names it uses are below. Calls that a real GPU has measured are patterns of ``tests/gpu``.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from tests.simcuda.conftest import statements_for

import simcuda
from simcuda import Measurement

NAMES = """
x = torch.rand(8, device="cuda")
rows = torch.rand(4, 6, device="cuda")
value = torch.rand((), device="cuda")
one = torch.tensor(1, device="cuda")
three = torch.tensor(3, device="cuda")
index = torch.tensor([0, 2, 1], device="cuda")
mask = torch.tensor([True, False, True, True, False, False, True, False], device="cuda")
classes = torch.zeros(4, dtype=torch.int64, device="cuda")
eye = torch.eye(3, device="cuda")
eye @ eye  # the first product takes memory for cuBLAS, which may block
floats = torch.ones(4, 6)
many = torch.rand(100, device="cuda")
batch = torch.rand(5, 2, 4, device="cuda")
pinned = torch.ones(4, 6).pin_memory()
saved = io.BytesIO()
torch.save(torch.ones(3, device="cuda"), saved)
saved.seek(0)
"""


class Counts(NamedTuple):
    """Waits for a stream, copies to the device and back, and places where the host may block."""

    waits: int = 0
    h2d: int = 0
    d2h: int = 0
    implicit: int = 0


NOTHING = Counts()
READ, WRITE = Counts(1, d2h=1), Counts(1, h2d=1)


def reads(times: int) -> Counts:
    """That many values are read, each with a wait."""
    return Counts(times, d2h=times)


# ATen/native/cuda/CUDAScalar.cu: one value is copied into pinned memory, and the stream waited for.
VALUES = {
    "complex(value)": READ,
    "value in [value + 1, value + 1]": reads(2),
}
# ATen/native/cuda/Copy.cu: a blocking copy waits, from and to pinned memory too; others may block where the
# host's memory is pageable, as it is where they are staged on the host.
COPIES = {
    "floats.to('cuda', non_blocking=True)": Counts(h2d=1, implicit=1),
    "pinned[:, 0].to('cuda', non_blocking=True)": Counts(h2d=1, implicit=1),
    "rows.copy_(pinned, non_blocking=True)": Counts(h2d=1),
    "floats.copy_(rows, non_blocking=True)": Counts(d2h=1, implicit=1),
    "pinned.copy_(rows, non_blocking=True)": Counts(d2h=1),
    # ATen/native/TensorConversions.cpp: the result of an asynchronous copy to the host is pinned, which the
    # first time of a size is a cudaHostAlloc (ATen/cuda/CachingHostAllocator.cpp).
    "rows.to('cpu', non_blocking=True)": Counts(d2h=1, implicit=1),
    "floats.t().to('cuda', torch.float64)": WRITE,
}
# torch/csrc/utils/python_arg_parser.cpp: a number given as a device tensor is read.
NUMBERS = {
    "torch.full((2,), value)": READ,
    # The result is on the host, the ends are not.
    "torch.linspace(value, value, 4)": reads(2),
    "torch.zeros((one, three), device='cuda')": reads(2),
    "x.repeat(one)": READ,
    "x.sum(one - 1)": READ,
    "x.roll(one)": READ,
    # ATen/native/RangeFactories.cpp reads its ends.
    "torch.logspace(value, 2.0, 4, device='cuda')": READ,
}
INDEXING = {
    # ATen/native/IndexingUtils.h: a mask becomes indices by nonzero.
    "x[mask.to(torch.uint8)]": READ,
    # torch/csrc/autograd/python_variable_indexing.cpp: a number stays on the host, and fills by the mask.
    "x[mask] = torch.tensor(1.0)": NOTHING,
    # With indices the number is copied to the device.
    "x[index] = 1.0": WRITE,
    "x[numpy.array([0, 1])]": WRITE,
}
LENGTHS = {
    # ATen/native/cuda/SummaryOps.cu.
    "x.histc(4, 1, 1)": reads(2),
    # ATen/native/TensorCompare.cpp: 10 x 8^0.145 = 13.5 candidates or more are sorted, after what is unique
    # in both was counted.
    "torch.isin(x, many[:12])": NOTHING,
    "torch.isin(x, many[:13])": Counts(3, h2d=1, d2h=2),  # index_put_ of the host's truth value, too
    "torch.isin(x, many, assume_unique=True)": WRITE,
    # ATen/native/cuda/Unique.cu: Thrust reads how many rows are left, and waits again when it is done.
    "torch.unique_consecutive(rows, dim=0)": Counts(2, d2h=1),
    "torch.isin(0.5, many)": Counts(3, h2d=1, d2h=2),
}
LAYERS = {
    "F.embedding_bag(index, rows, classes[:1], max_norm=1.0)": NOTHING,
    # torch/nn/utils/rnn.py: the order of the lengths is copied to the device.
    "nn.utils.rnn.pack_padded_sequence(batch, torch.tensor([3, 5]), enforce_sorted=False)": WRITE,
}
OTHERS = {
    "torch.load(saved, map_location='cpu')": NOTHING,
}
FACTS = VALUES | COPIES | NUMBERS | INDEXING | LENGTHS | LAYERS | OTHERS

# torch/_tensor_str.py: the formatter reads every element that it prints; of floats also how many are not 0.
PRINTED = {
    ("int64", (10, 10)): 110,
    ("int64", (1000,)): 1001,
    ("int64", (2000,)): 8,
    ("float32", (10, 10)): 214 + 1,
    ("float32", (2000,)): 18 + 1,
}


def cost_of(code: str) -> Measurement:
    """What one line of code costs."""
    names: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "io": io}
    names["numpy"] = np
    with simcuda.device() as gpu:
        exec(statements_for(code, NAMES), names)  # noqa: S102 - the code is ours
        with gpu.measure() as measured:
            exec(code, names)  # noqa: S102 - as above
        names.clear()
    return measured


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize(("code", "counts"), FACTS.items(), ids=FACTS)
def test_a_call_waits_and_copies_as_on_cuda(code: str, counts: Counts) -> None:
    """Waits, copies in each direction and places that may block are those of the sources named above."""
    m = cost_of(code)
    assert counts == Counts(m.syncs, m.h2d, m.d2h, m.implicit_syncs)
    assert (m.syncs, ()) == (m.stream_syncs, m.unknown)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("torch.cuda.synchronize()", "device_syncs"),
        ("torch.accelerator.synchronize()", "device_syncs"),
        ("event = torch.cuda.Event(); event.record(); event.synchronize()", "event_syncs"),
    ],
)
def test_waits_for_devices_and_events_are_kinds_of_their_own(code: str, kind: str) -> None:
    """c10/cuda/impl/CUDAGuardImpl.h: each waits once, and for no stream."""
    m = cost_of(code)
    assert (1, 1, 0) == (getattr(m, kind), m.syncs, m.stream_syncs)


@pytest.mark.parametrize(("printed", "times"), PRINTED.items(), ids=str)
def test_printing_reads_values_one_by_one(printed: tuple[str, tuple[int, ...]], times: int) -> None:
    """The text of a tensor costs a read for each number in it, and a few for its width."""
    dtype, shape = printed
    with simcuda.device() as gpu:
        torch.manual_seed(0)  # numbers that differ by a factor of 1000 are printed, and read, in another way
        x = torch.rand(shape, device="cuda").add(1).to(getattr(torch, dtype))
        with gpu.measure() as m:
            repr(x)
    assert times == m.syncs == m.d2h


UNKNOWN = {
    # Thrust and cuSOLVER wait within these: how often is not known.
    "torch.linalg.matrix_exp(eye)": "linalg_matrix_exp",
    "torch.rand(2049).cuda().mode()": "mode",
    "torch.linalg.eig(eye)": "linalg_eig",
    "F.ctc_loss(batch, torch.ones(2, dtype=torch.int32), (5, 5), (1, 1))": "_cudnn_ctc_loss",
    "torch.sparse.mm(rows.to_sparse(), rows.T.to_sparse())": "_sparse_sparse_matmul",
    "torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)": "quantize_per_tensor",
}


@pytest.mark.filterwarnings("ignore:Sparse", "ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize(("code", "operation"), UNKNOWN.items(), ids=UNKNOWN)
def test_what_nobody_worked_out_is_unknown(code: str, operation: str) -> None:
    """A call whose waits are not known says so."""
    assert operation in {name.split(".")[1] for name in cost_of(code).unknown}
