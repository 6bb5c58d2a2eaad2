"""Operators by the names that torchvision gives them, with kernels for the CPU that stand for its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from simcuda import SimulatedCuda
from simcuda.costs.rules import OF_LIBRARIES, example_names, run_example

DEFINITIONS = {
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": lambda _boxes, scores, threshold: (
        scores.argsort(descending=True)[: int(threshold * len(scores))]
    ),
    "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor": lambda x, rois, _scale, height, width, *_: x.new_zeros(
        len(rois), x.shape[1], height, width
    ),
    "_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
    "int batch_size, int channels, int height, int width, int sampling_ratio, bool aligned) -> Tensor": (
        lambda grad, _rois, _scale, _h, _w, *sizes: grad.new_zeros(*sizes[:4])
    ),
}


@pytest.fixture
def vision(gpu: SimulatedCuda) -> Iterator[Any]:
    """The operators of torchvision."""
    assert gpu
    if hasattr(torch.ops.torchvision, "nms"):
        pytest.skip("torchvision is installed: its own kernels are there")
    make: Any = torch.library.Library
    library = make("torchvision", "DEF")
    for schema, kernel in DEFINITIONS.items():
        library.define(schema)
        library.impl(schema.partition("(")[0], kernel, "CPU")
    yield torch.ops.torchvision
    library._destroy()


@pytest.mark.parametrize("rule", OF_LIBRARIES, ids=lambda rule: rule.id)
def test_the_example_of_a_rule_is_known(gpu: SimulatedCuda, vision: Any, rule: Any) -> None:
    """As for the rules of PyTorch's own operations, none is unknown."""
    assert vision
    names = example_names()
    with gpu.measure() as cost:
        run_example(rule, names)
    assert ((), True) == (cost.unknown, cost.launches > 0)


@pytest.mark.parametrize("kept", [0, 50])
def test_suppression_waits_once_for_how_many_are_kept(gpu: SimulatedCuda, vision: Any, kept: int) -> None:
    """What suppresses what stays on the device: 100 boxes are 2 words of 64 bits each."""
    boxes, scores = torch.rand(100, 4, device="cuda"), torch.rand(100, device="cuda")
    with gpu.measure() as cost:
        assert kept == len(vision.nms(boxes, scores, kept / 100))
    # CUB's count of what is kept is a 32-bit number.
    assert (1, 1, 4) == (cost.syncs, cost.d2h, cost.d2h_bytes)
    # A sort of up to 4096: a range, and the sort itself; indices once and values twice as bytes.
    assert (3, 100 * (8 + 4 + 4)) == (cost.d2d, cost.d2d_bytes)
    # Then boxes selected, compared; zeros, filled; counted, selected by two, and the order if any is kept.
    assert 2 + 4 + 3 + int(kept > 0) == cost.launches
    # The words, which are the largest of its buffers: 100 x 2 x 8 bytes, as the boxes' 100 x 4 x 4.
    assert 1600 == cost.largest_allocation


def test_regions_are_aligned_without_a_wait(gpu: SimulatedCuda, vision: Any) -> None:
    """Zeros and one kernel, and a copy of what has gaps; of no regions nothing is made."""
    image, regions = torch.rand(1, 3, 8, 8, device="cuda"), torch.rand(2, 5, device="cuda")
    how = (1.0, 2, 2, -1, False)
    with gpu.measure() as cost:
        result = vision.roi_align(image, regions, *how)
    assert (2, 0, 1) == (cost.launches, cost.syncs, cost.allocations)
    with gpu.measure() as cost:
        vision.roi_align(image.mT, regions, *how)
        vision.roi_align(image, regions[:0], *how)
    assert (3, 0, ()) == (cost.launches, cost.syncs, cost.unknown)
    with gpu.measure() as cost:
        gradient = vision._roi_align_backward(result.mT, regions, 1.0, 2, 2, 1, 3, 8, 8, -1, False)
    assert (2, image.shape) == (cost.launches, gradient.shape)
