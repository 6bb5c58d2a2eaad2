"""Which line is at work, as marks in the profiler's own trace."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd.profiler import profile

from simcuda.real import trace
from simcuda.real.device import events_of
from simcuda.real.marks import Marks, mark, place_of

HERE = __file__


def lines_of(work: Callable[[], Any]) -> list[tuple[int, str]]:
    """Line and function of every mark that following ``work`` leaves, but for those of this helper."""
    marks = Marks()
    with profile(use_cpu=True, use_kineto=True) as profiler, marks.following_lines():
        work()
    seen = trace.ProfilerTrace(events_of(profiler)).marks
    places = [marks.places[int(mark.text.split()[1])] for mark in seen if mark.text.startswith("line ")]
    return [(line, function) for file, line, function in places if file == HERE and function != "lines_of"]


def test_every_line_of_user_code_shows() -> None:
    """Lines in their order, also those of a function that is called and of its caller afterwards."""

    def inner() -> None:
        torch.ones(1)

    def outer() -> None:
        inner()
        torch.zeros(1)

    first, start = inner.__code__.co_firstlineno, outer.__code__.co_firstlineno
    # A call of a function shows as its first line, a return as the line that goes on.
    assert [
        (start, "outer"),
        (start + 1, "outer"),
        (first, "inner"),
        (first + 1, "inner"),
        (start + 1, "outer"),
        (start + 2, "outer"),
    ] == lines_of(outer)


def test_library_code_is_the_line_that_called_it() -> None:
    """No line of torch's own Python shows, and a hook that it calls does."""
    layer = torch.nn.Linear(2, 2)

    def hook(*_: Any) -> None:
        torch.ones(1)

    layer.register_forward_hook(hook)

    def outer() -> None:
        layer(torch.ones(2))

    first, start = hook.__code__.co_firstlineno, outer.__code__.co_firstlineno
    assert [
        (start, "outer"),
        (start + 1, "outer"),
        (first, "hook"),
        (first + 1, "hook"),
        (start + 1, "outer"),
    ] == lines_of(outer)


def test_operations_lie_between_the_marks_of_their_lines() -> None:
    """One clock orders marks and operations."""
    marks = Marks()
    with profile(use_cpu=True, use_kineto=True) as profiler, marks.following_lines():
        torch.ones(1)
        torch.eye(1)
    events = [event for event in events_of(profiler) if event.get("ph") == "X"]
    starts = {event["name"]: event["ts"] for event in events}
    lines = [mark.start for mark in trace.ProfilerTrace(events).marks]
    before = [sum(line < starts[name] for line in lines) for name in ("aten::ones", "aten::eye")]
    assert before[0] < before[1]


def test_following_leaves_nothing_behind() -> None:
    """Neither a trace function nor the frames that were followed, also after an exception."""
    marks = Marks()
    with pytest.raises(ValueError, match="enough"), marks.following_lines():
        raise ValueError("enough")
    assert (None, None) == (sys.gettrace(), sys._getframe().f_trace)


def test_a_debugger_goes_on() -> None:
    """Another trace function stays in place and gets what happens."""
    seen: list[str] = []

    def debugger(_frame: Any, event: str, _argument: Any) -> None:
        seen.append(event)

    marks = Marks()
    sys.settrace(debugger)
    try:
        with marks.following_lines():
            place_of(None)
        kept = sys.gettrace()
    finally:
        sys.settrace(None)
    assert (True, []) == (kept is debugger, marks.places)
    assert "call" in seen


def test_a_mark_without_a_profiler_is_harmless() -> None:
    """Lines may be followed for a moment longer; nothing comes of a mark then."""
    with mark("line 0"):
        assert not torch._C._autograd._profiler_enabled()
