"""What a copy costs, by where it comes from, where it goes, and whether the host waits for it."""

from __future__ import annotations

import torch

from simcuda.cost import launches
from simcuda.cost.call import nbytes
from simcuda.device.machine import Machine
from simcuda.device.sparse import is_sparse, parts_of
from simcuda.device.storages import HOST


def charge_copy(machine: Machine, to: torch.Tensor, source: torch.Tensor, *, non_blocking: bool) -> None:
    """Charge the copy of ``source`` into ``to``, both placed already.

    Between host and device only contiguous memory of one type moves. Types are converted on the host for a
    blocking copy and on the device for another, and what is not contiguous goes through temporaries. Sparse
    tensors are copied part by part.
    """
    if not is_sparse(to):
        _charge_dense(machine, to, source, non_blocking=non_blocking)
        return
    for part, original in zip(parts_of(to), parts_of(source), strict=True):
        _charge_dense(machine, part, original, non_blocking=non_blocking)


def _charge_dense(machine: Machine, to: torch.Tensor, source: torch.Tensor, *, non_blocking: bool) -> None:
    of = machine.storages.of
    to_tag, source_tag = of(to), of(source)
    there = HOST if to_tag is None else to_tag.device
    here = HOST if source_tag is None else source_tag.device
    if to_tag is not None and to_tag.floating:
        if here != HOST:
            machine.adopt(to_tag, here)
            there = here
        elif source.dim() and (source_tag is None or not source_tag.floating):
            machine.settle((to_tag,))
    elif there != HOST and source_tag is not None and source_tag.floating:
        machine.adopt(source_tag, there)
        here = there
    if not to.numel():
        return
    if here == there == HOST:
        _on_host(machine, to, source)
    elif here == there:
        _within(machine, here, to, source)
    elif here == HOST:
        _to_device(machine, there, to, source, non_blocking=non_blocking)
    elif there == HOST:
        _to_host(machine, here, to, source, non_blocking=non_blocking)
    else:
        _across(machine, here, there, to, source)


def same_bytes(to: torch.Tensor, source: torch.Tensor) -> bool:
    """Whether the copy is one run of bytes: one type, and both dense in the same order of strides."""
    if to.dtype != source.dtype or to.is_conj() != source.is_conj() or to.is_neg() != source.is_neg():
        return False
    if to.shape == source.shape and to.is_contiguous() and source.is_contiguous():
        return True
    dimensions = [(size, a, b) for size, a, b in _steps(to, source) if size != 1]
    dense = 1
    for size, a, b in sorted(dimensions, key=lambda dimension: dimension[1]):
        if a != dense or b != dense:
            return False
        dense *= size
    return True


def _steps(to: torch.Tensor, source: torch.Tensor) -> list[tuple[int, int, int]]:
    strides = source.expand_as(to).stride()
    return list(zip(to.shape, to.stride(), strides, strict=True))


def _serials(machine: Machine, tensor: torch.Tensor) -> tuple[int, ...]:
    tag = machine.storages.of(tensor)
    watched = tag is not None and (tag.device != HOST or tag.pinned)
    return (tag.serial,) if tag is not None and watched else ()


def _is_pinned(machine: Machine, tensor: torch.Tensor) -> bool:
    tag = machine.storages.of(tensor)
    return tag is not None and tag.pinned


def _on_host(machine: Machine, to: torch.Tensor, source: torch.Tensor) -> None:
    for serial in _serials(machine, source):
        machine.host_touches(serial, writes=False)
    for serial in _serials(machine, to):
        machine.host_touches(serial, writes=True)


def _within(machine: Machine, device: int, to: torch.Tensor, source: torch.Tensor) -> None:
    kernels = launches.copy(
        to.numel(), max(to.element_size(), source.element_size()), as_bytes=same_bytes(to, source)
    )
    if not kernels:
        if to.data_ptr() == source.data_ptr():
            return
        machine.ledger.copy("d2d", nbytes(to))
    machine.run(device, kernels, _serials(machine, source), _serials(machine, to))


def _across(machine: Machine, here: int, there: int, to: torch.Tensor, source: torch.Tensor) -> None:
    machine.ledger.copy("p2p", to.numel() * source.element_size())
    machine.ledger.launch(0 if same_bytes(to, source) else 1)
    machine.copy_across(here, there, *_serials(machine, source), *_serials(machine, to))


def _to_device(
    machine: Machine, device: int, to: torch.Tensor, source: torch.Tensor, *, non_blocking: bool
) -> None:
    alike = same_bytes(to, source)
    converted_here = non_blocking and to.dtype != source.dtype
    staged = not alike and (converted_here or not to.is_contiguous())
    moved = to.numel() * (source.element_size() if converted_here else to.element_size())
    pinned = _is_pinned(machine, source) and (alike or (source.is_contiguous() and source.shape == to.shape))
    blocks = machine.use_for_a_while(device, (moved,) if staged else ())
    _move(machine, device, "h2d", moved, to, source, non_blocking=non_blocking, pinned=pinned)
    if staged:
        machine.run(device, launches.elementwise(to.numel(), to.element_size()), (), _serials(machine, to))
    machine.free(device, blocks)


def _to_host(
    machine: Machine, device: int, to: torch.Tensor, source: torch.Tensor, *, non_blocking: bool
) -> None:
    alike = same_bytes(to, source)
    converted_there = non_blocking and to.dtype != source.dtype
    scattered = not alike and not source.expand_as(to).is_contiguous()
    moved = to.numel() * (to.element_size() if converted_there else source.element_size())
    temporaries = (moved,) * (int(converted_there) + int(scattered))
    pinned = _is_pinned(machine, to) and (alike or to.is_contiguous())
    blocks = machine.use_for_a_while(device, temporaries)
    if temporaries:
        machine.run(device, len(temporaries), _serials(machine, source), ())
    _move(machine, device, "d2h", moved, to, source, non_blocking=non_blocking, pinned=pinned)
    machine.free(device, blocks)


def _move(
    machine: Machine,
    device: int,
    kind: str,
    moved: int,
    to: torch.Tensor,
    source: torch.Tensor,
    *,
    non_blocking: bool,
    pinned: bool,
) -> None:
    machine.ledger.copy(kind, moved)
    machine.run(device, 0, _serials(machine, source), _serials(machine, to))
    if not non_blocking:
        machine.wait_for_stream(machine.stream(device))
    elif not pinned:
        machine.ledger.count("implicit_syncs")
