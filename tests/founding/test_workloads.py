"""What all workloads of the founding documents have in common, looked at on the simulated device."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn

import simcuda
from finding_tickets.workload import Point, Workload

TICKETS = ["b7_pt_02", "b7_pt_03", "b3_cr_05", "b1_pt_02", "task_5"]
MILLION = 1_000_000


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor among arguments, with the gradients of parameters."""
    if isinstance(value, nn.Module):
        yield from tensors([*value.parameters(), *value.buffers()])
    elif isinstance(value, torch.Tensor):
        yield value
        yield from [] if value.grad is None else [value.grad]
    elif isinstance(value, Mapping):
        yield from tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)


def on_the_host(workload: Workload, point: Point, seed: int = 0) -> list[tuple[str, torch.Tensor]]:
    """The device of each tensor that a workload builds at a point, and its values on the host."""
    with simcuda.device(max(1, workload.devices(point)), capacity=workload.memory(point)):
        built = workload.build(point, "cuda", torch.Generator().manual_seed(seed))
        return [(str(tensor.device), tensor.detach().cpu()) for tensor in tensors(built)]


@pytest.mark.parametrize("ticket", TICKETS)
def test_a_sweep_has_enough_points_and_none_twice(workload: Callable[[str], Workload], ticket: str) -> None:
    """A law needs two points more than it has coefficients, and the same point again is no second one."""
    sweep = [tuple(point.items()) for point in workload(ticket).sweep]
    assert len(sweep) == len(set(sweep))
    assert 9 <= len(sweep) <= 22


@pytest.mark.slow
@pytest.mark.parametrize("ticket", TICKETS)
def test_a_point_gets_as_many_devices_as_it_uses(workload: Callable[[str], Workload], ticket: str) -> None:
    """The tensors of a point lie on the devices that it asks for, and on the host.

    NaN and Inf occur in the sweep, and so do tensors that are finite; but B1-PT-02 reads no values.
    """
    work = workload(ticket)
    seen = {"nan": False, "inf": False, "finite": False}
    for point in work.sweep:
        made = on_the_host(work, point)
        used = {device for device, _ in made} - {"cpu"}
        assert len(used) == work.devices(point) or (work.devices(point) == 1 and not used)
        for _, tensor in made:
            seen["nan"] = seen["nan"] or bool(tensor.isnan().any())
            seen["inf"] = seen["inf"] or bool(tensor.isinf().any())
            seen["finite"] = seen["finite"] or bool(tensor.numel() and tensor.isfinite().all())
    assert ticket == "b1_pt_02" or all(seen.values())


@pytest.mark.parametrize("ticket", TICKETS)
def test_runs_get_fresh_values_and_variants_equal_ones(
    workload: Callable[[str], Workload], ticket: str
) -> None:
    """The same seed builds the same values again, another seed builds others."""
    work = workload(ticket)
    point = work.sweep[3]
    once, again, other = (on_the_host(work, point, seed) for seed in (1, 1, 2))
    assert all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) for (_, a), (_, b) in zip(once, again, strict=True)
    )
    assert not all(torch.equal(a, b) for (_, a), (_, b) in zip(once, other, strict=True))


EDGES: dict[str, Callable[[list[nn.Parameter]], bool]] = {
    "with gradients": lambda made: any(parameter.grad is not None for parameter in made),
    "without gradients": lambda made: any(parameter.grad is None for parameter in made),
    "empty": lambda made: any(parameter.numel() == 0 for parameter in made),
    "not contiguous": lambda made: any(not parameter.is_contiguous() for parameter in made),
    "mixed types": lambda made: len({parameter.dtype for parameter in made}) >= 2,
    "a million elements": lambda made: any(
        parameter.numel() >= MILLION and parameter.is_contiguous() for parameter in made
    ),
    "one device": lambda made: len({parameter.device for parameter in made}) == 1,
    "several devices": lambda made: len({parameter.device for parameter in made}) >= 2,
    "none at all": lambda made: not made,
}
LARGE_AND_STRIDED = "a million elements, not contiguous"
WITH_LARGEST = ["b7_pt_02", "b7_pt_03", "task_5"]


@pytest.mark.slow
@pytest.mark.parametrize("ticket", TICKETS)
@pytest.mark.parametrize("edge", EDGES)
def test_a_sweep_contains_the_edges(edges: Callable[[str], set[str]], ticket: str, edge: str) -> None:
    """Each sweep has a point whose parameters are at the edge."""
    assert edge in edges(ticket)


@pytest.mark.slow
@pytest.mark.parametrize("ticket", WITH_LARGEST)
def test_the_largest_tensor_has_another_layout_too(edges: Callable[[str], set[str]], ticket: str) -> None:
    """Where a law speaks of the largest tensor, it is not always a contiguous one."""
    assert LARGE_AND_STRIDED in edges(ticket)


@pytest.fixture(scope="module")
def edges(workload: Callable[[str], Workload]) -> Callable[[str], set[str]]:
    """``edges("task_5")`` are the edges that the sweep contains, as seen on a simulated device."""

    @cache
    def contained(ticket: str) -> set[str]:
        work = workload(ticket)
        # The norms of B3-CR-05 are made from parameters, which its ``build`` does not hand out.
        build = getattr(sys.modules[f"verifiers_{ticket}"], "parameters", work.build)
        found = set()
        for point in work.sweep:
            with simcuda.device(work.devices(point), capacity=work.memory(point)):
                built = tensors(build(point, "cuda", torch.Generator().manual_seed(0)))
                made = [tensor for tensor in built if isinstance(tensor, nn.Parameter)]
                found |= {edge for edge, contains in EDGES.items() if contains(made)}
                if any(parameter.numel() >= MILLION and not parameter.is_contiguous() for parameter in made):
                    found.add(LARGE_AND_STRIDED)
        return found

    return contained


@pytest.mark.slow
def test_norms_lie_where_the_point_says(workload: Callable[[str], Workload]) -> None:
    """Of B3-CR-05's norms the remote ones are off the first device, and the half ones have two bytes."""
    work = workload("b3_cr_05")
    for point in work.sweep:
        norms = on_the_host(work, point)
        assert point.norms == len(norms)
        assert point.remote == sum(device != "cuda:0" for device, _ in norms)
        assert point.half == sum(norm.element_size() == 2 for _, norm in norms)


@pytest.mark.slow
def test_saved_state_lies_where_the_point_says(workload: Callable[[str], Workload]) -> None:
    """Of B1-PT-02's saved tensors with elements the pageable ones are not pinned, and all others are."""
    work = workload("b1_pt_02")
    for point in work.sweep:
        with simcuda.device(work.devices(point)):
            model, saved, _ = work.build(point, "cuda", torch.Generator().manual_seed(0))
            values = [value for value in tensors(saved) if value.numel()]
            assert point.tensors == len(values)
            assert point.pageable == sum(not value.is_pinned() for value in values)
            assert point.remote == sum(
                parameter.device == torch.device("cuda:1") for parameter in model.parameters()
            )
