"""Model the cost of a copy by its source, its target, and whether the host waits for it."""

from __future__ import annotations

import torch
from torch import Tensor

from simcuda.costs.call import FREE, OpCost
from simcuda.costs.launches import elementwise, kernels_over
from simcuda.device.machine import Machine
from simcuda.device.ordering import Data
from simcuda.device.storages import HOST, device_of_tag, is_sparse, parts_of


def _are_of_one_type(to: Tensor, source: Tensor) -> bool:
    return (
        to.dtype == source.dtype
        and to.is_conj() == source.is_conj()
        and to.is_neg() == source.is_neg()
    )


def same_bytes(to: Tensor, source: Tensor) -> bool:
    """Return True if the copy is one run of bytes: one type, and both dense in the same order of strides."""
    if not _are_of_one_type(to, source):
        return False
    if to.shape == source.shape and to.is_contiguous() and source.is_contiguous():
        return True
    # A source that is broadcast has strides of 0, which no run of bytes has.
    strides = source.expand_as(to).stride()
    steps = [
        step
        for step in zip(to.stride(), strides, to.shape, strict=True)
        if step[2] != 1
    ]
    # From the fastest dimension outwards, each has to begin where the one before ends, in both.
    dense = 1
    for to_stride, source_stride, size in sorted(steps, key=lambda step: step[0]):
        if to_stride != dense or source_stride != dense:
            return False
        dense *= size
    return True


def copied_within(to: Tensor, source: Tensor) -> OpCost:
    """A copy within a device: bytes where both are laid out alike, else a kernel.

    The source has a shape that broadcasts to that of ``to``. Nothing is done without elements, and where both
    are one tensor, as in operations in place.
    """
    if to is source or not to.numel():
        return FREE
    if same_bytes(to, source):
        return OpCost(copies=(("d2d", to.nbytes),))
    return OpCost(kernels_over(to))


def contiguous(
    tensor: Tensor, memory_format: torch.memory_format = torch.contiguous_format
) -> OpCost:
    """``tensor.contiguous(memory_format=memory_format)``: nothing, or a kernel and a temporary.

    The temporary has the bytes of the tensor's elements.
    """
    if tensor.is_contiguous(memory_format=memory_format):
        return FREE
    return OpCost(kernels_over(tensor), temporaries=(tensor.nbytes,))


def charge_copy(
    machine: Machine, to: Tensor, source: Tensor, *, non_blocking: bool
) -> None:
    """Charge the copy of ``source`` into ``to``, both placed already; sparse ones are copied part by part."""
    if to.is_nested:
        # ATen/native/nested/NestedTensorFactories.cpp, copy_nested_: one buffer of all values.
        to, source = to.values(), source.values()
    if is_sparse(to):
        for part, original in zip(parts_of(to), parts_of(source), strict=True):
            charge_copy(machine, part, original, non_blocking=non_blocking)
        return
    to_tag, source_tag = machine.storages.of(to), machine.storages.of(source)
    there = device_of_tag(to_tag)
    here = device_of_tag(source_tag)
    # What C++ code made for itself belongs to the device that it is copied to or from.
    if to_tag is not None and to_tag.floating:
        if here != HOST:
            machine.adopt(to_tag, here)
            there = here
        elif source.dim() and (source_tag is None or not source_tag.floating):
            machine.settle((to_tag,))
    elif there != HOST and source_tag is not None and source_tag.floating:
        machine.adopt(source_tag, there)
        here = there
    # Nothing moves, but a floating tensor now has its device.
    if not to.numel():
        return
    # Accesses to devices' memory and to pinned memory need an order, those to other host memory have one.
    reads, writes = (
        (machine.touched(tensor, tag),)
        if tag is not None and (tag.device != HOST or tag.pinned)
        else ()
        for tensor, tag in ((source, source_tag), (to, to_tag))
    )
    if here == there == HOST:
        for data in reads:
            machine.host_touches(data, writes=False)
        for data in writes:
            machine.host_touches(data, writes=True)
    elif here == there:
        _within(machine, here, to, source, reads, writes)
    elif HOST in (here, there):
        _transfer(machine, to, source, reads, writes, non_blocking=non_blocking)
    else:
        machine.ledger.count("p2p", 1, to.numel() * source.element_size())
        machine.ledger.launch(0 if same_bytes(to, source) else 1)
        streams = machine.current.streams
        machine.raced(
            machine.ordering.copy_across(streams[here], streams[there], *reads, *writes)
        )


def _within(
    machine: Machine,
    device: int,
    to: Tensor,
    source: Tensor,
    reads: tuple[Data, ...],
    writes: tuple[Data, ...],
) -> None:
    """Charge a copy within a device: bytes, or a kernel; nothing if both are one view.

    Source: ATen/native/Copy.cpp, copy_impl: is_same_data. So ``x[:, 0] += 1`` writes nothing back.
    """
    if to.is_set_to(source) and _are_of_one_type(to, source):
        return
    if not same_bytes(to, source):
        kernels = elementwise(to.numel(), max(to.element_size(), source.element_size()))
        machine.run(device, kernels, reads, writes)
    elif to.data_ptr() != source.data_ptr():
        machine.ledger.count("d2d", 1, to.nbytes)
        machine.run(device, 0, reads, writes)


def _transfer(
    machine: Machine,
    to: Tensor,
    source: Tensor,
    reads: tuple[Data, ...],
    writes: tuple[Data, ...],
    *,
    non_blocking: bool,
) -> None:
    """Charge a copy between host and device, for data as from ``Machine.touched``.

    Only contiguous memory of one type moves between them. Types are converted on the host for a blocking copy
    and on the device for another, and what is not contiguous goes through temporaries.
    """
    to_tag, source_tag = machine.storages.of(to), machine.storages.of(source)
    alike = same_bytes(to, source)
    is_converted_there = non_blocking and to.dtype != source.dtype
    device = device_of_tag(to_tag)
    if device != HOST:
        kind = "h2d"
        moved = to.numel() * (source if is_converted_there else to).element_size()
        is_staged = not alike and (is_converted_there or not to.is_contiguous())
        temporaries = (moved,) * int(is_staged)
        on_host, is_whole = (
            source_tag,
            source.is_contiguous() and source.shape == to.shape,
        )
    else:
        kind = "d2h"
        device = device_of_tag(source_tag)
        moved = to.numel() * (to if is_converted_there else source).element_size()
        # What is converted has no gaps.
        sent = torch.empty_like(source, device="meta") if is_converted_there else source
        is_scattered = not alike and not sent.expand_as(to).is_contiguous()
        temporaries = (moved,) * (int(is_converted_there) + int(is_scattered))
        on_host, is_whole = to_tag, to.is_contiguous()
    blocks = machine.use_for_a_while(device, temporaries)
    try:
        if temporaries and kind == "d2h":
            machine.run(device, len(temporaries), reads, ())
        machine.ledger.count(kind, 1, moved)
        machine.run(device, 0, reads, writes)
        if not non_blocking:
            machine.wait_for_stream(machine.current.streams[device])
        elif on_host is None or not on_host.pinned or not (alike or is_whole):
            # CUDA stages pageable memory itself, and may block while it does.
            machine.ledger.count("implicit_syncs")
        if temporaries and kind == "h2d":
            machine.run(device, kernels_over(to), (), writes)
    finally:
        machine.free(device, blocks)
