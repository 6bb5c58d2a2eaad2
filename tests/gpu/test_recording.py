"""What a real GPU said of the patterns, and what was derived before."""

from __future__ import annotations

import pytest
from tests.gpu.agreement import RECORDINGS, differences, is_within_range, recorded_numbers
from tests.gpu.by_profiler import count_events, kernel_name
from tests.gpu.known import GPUS_DIFFER, KNOWN, metrics_by_name
from tests.gpu.pattern import METRICS, load
from tests.gpu.run import recorded_text, table


@pytest.mark.parametrize(("place", "least", "above_zero"), [(0, 2300, 780), (1, 3800, 1290)])
def test_every_derived_number_is_what_the_gpu_said(place: int, least: int, above_zero: int) -> None:
    """All numbers of all patterns: waits, copies by direction, kernels, allocations."""
    wrong = []
    derived = []
    for name, pattern in load().items():
        recorded = recorded_numbers(RECORDINGS[place], name)
        for metric, number in pattern.expected_on(RECORDINGS[place]["machine"]["torch"]).items():
            if metric in recorded:
                derived.append(number)
                if number != recorded[metric]:
                    wrong.append((name, metric, number, recorded[metric]))
    assert [] == wrong
    assert len(derived) > least
    assert len(derived) - derived.count(0) > above_zero


def test_every_pattern_was_recorded() -> None:
    """None failed on a GPU, each that was recorded is still there, and the last recording has all."""
    for recording in RECORDINGS:
        assert [] == [name for name, each in recording["patterns"].items() if "error" in each]
        assert recording["patterns"].keys() <= load().keys()
    assert RECORDINGS[-1]["patterns"].keys() == load().keys()


def test_gpus_agree_on_all_metrics() -> None:
    """Both have the same PyTorch and as many multiprocessors; what differs is listed with its reason."""
    differing: dict[str, set[str]] = {}
    one, other = RECORDINGS
    for name in one["patterns"]:
        numbers = recorded_numbers(other, name).items()
        differing[name] = {metric for metric, _ in recorded_numbers(one, name).items() ^ numbers}
    assert metrics_by_name(GPUS_DIFFER) == {name: metrics for name, metrics in differing.items() if metrics}


def test_every_known_difference_is_of_a_pattern() -> None:
    """No name and no metric in the list is misspelt."""
    for patterns in KNOWN.values():
        for name, metrics in patterns.items():
            assert name in load()
            assert set(metrics.split()) <= set(METRICS)


def test_a_range_counts_as_right_where_it_contains_the_number() -> None:
    """Of waits the range is that of ``syncs``; None is no bound."""
    ranges: dict[str, list[int | None]] = {"syncs": [1, 3], "launches": [4, None]}
    assert is_within_range(ranges, "waits", 3)
    assert not is_within_range(ranges, "waits", 4)
    assert is_within_range(ranges, "launches", 99)
    assert not is_within_range(ranges, "launches", 3)
    assert not is_within_range(ranges, "h2d", 0)
    outcome = {"counted": dict.fromkeys(METRICS, 2), "ranges": ranges}
    assert [("waits", 2, 4), ("h2d", 2, 1)] == differences(outcome, {"waits": 4, "launches": 5, "h2d": 1})


def test_only_what_lies_within_the_mark_is_counted() -> None:
    """Calls by their time, kernels and copies by the calls that they belong to."""
    mark = {"ph": "X", "name": "pattern that is measured", "cat": "user_annotation", "ts": 10, "dur": 10}

    def call(name: str, time: int, correlation: int) -> dict[str, object]:
        return {
            "ph": "X",
            "name": name,
            "cat": "cuda_runtime",
            "ts": time,
            "args": {"correlation": correlation},
        }

    def work(name: str, kind: str, correlation: int) -> dict[str, object]:
        return {"ph": "X", "name": name, "cat": kind, "ts": 99, "args": {"correlation": correlation}}

    counted = count_events(
        [
            mark,
            call("cudaLaunchKernel", 5, 1),
            call("cudaLaunchKernel", 11, 2),
            call("cudaMemcpyAsync", 12, 3),
            call("cudaStreamSynchronize", 13, 4),
            call("cudaDeviceSynchronize", 21, 5),
            work("void before<int>()", "kernel", 1),
            work("void within<int>()", "kernel", 2),
            work("Memcpy DtoH (Device -> Pinned)", "gpu_memcpy", 3),
        ]
    )
    assert {"waits": 1, "d2h": 1, "launches": 1} == counted["counted"]
    assert {"cudaStreamSynchronize": 1} == counted["waits"]
    assert {"within": 1} == counted["kernels"]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            "void at::native::reduce_kernel<512, at::native::ReduceOp<float, at::native::MeanOps<float> > >",
            "reduce_kernel MeanOps",
        ),
        ("void at::native::(anonymous namespace)::softmax_warp_forward<float>(int)", "softmax_warp_forward"),
        (
            "void at::native::elementwise_kernel<128, at::native::gpu_kernel_impl<at::native::AddFunctor<",
            "elementwise_kernel AddFunctor",
        ),
    ],
)
def test_names_of_kernels_are_short(name: str, short: str) -> None:
    """A function, and what it applies."""
    assert short == kernel_name(name)


def test_the_table_names_what_differs() -> None:
    """By metric, then each pattern with both numbers, then what failed."""
    content = {
        "machine": {"torch": "2.11.0"},
        "patterns": {
            "value.item()": {"counted": {"waits": 1, "d2h": 1}},
            "float(value)": {"counted": {"waits": 2, "d2h": 1}},
            "int(one)": {"error": "lost"},
        },
    }
    lines = table(content, load())
    assert "float(value): waits 2 not 1" in lines
    assert "int(one): lost" in lines
    assert ["waits", "1", "1", "1"] == next(line for line in lines if line.startswith("waits")).split()


def test_a_recording_has_a_line_for_each_pattern_and_no_zeros() -> None:
    """So that two of them can be compared by any tool."""
    content = {
        "machine": {"torch": "2.11.0"},
        "patterns": {"b": {"counted": {"d2h": 0, "waits": 1}}, "a": {}},
    }
    assert (
        '{"machine": {"torch": "2.11.0"}, "patterns": {\n"a": {},\n"b": {"counted":{"waits":1}}\n}}\n'
        == recorded_text(content)
    )
