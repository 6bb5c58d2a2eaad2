"""Follow the measuring thread through user code, line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from simcuda.real.marks import LINE, Marks, is_user_code, place_of


@contextmanager
def followed(marks: Marks) -> Iterator[None]:
    """Leave a mark whenever this thread comes to another line of user code.

    Where a debugger or a coverage tool follows the thread already, it goes on doing so instead.
    """
    if sys.gettrace() is not None:
        yield
        return
    follower = _Follower(marks)
    follower.start()
    try:
        yield
    finally:
        follower.stop()


class _Follower:
    """Python's trace function: asked about every call, and in user code about every line."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._under_way: list[FrameType] = []

    def start(self) -> None:
        """Follow from here on, also in the functions that are under way."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if is_user_code(frame.f_code.co_filename):
                frame.f_trace = self._within
                self._under_way.append(frame)
            frame = frame.f_back
        self._come_to(sys._getframe(1))
        sys.settrace(self._calling)

    def stop(self) -> None:
        """Follow no more."""
        sys.settrace(None)
        for frame in self._under_way:
            frame.f_trace = None

    def _calling(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not is_user_code(frame.f_code.co_filename):
            return None
        return self._within(frame, event, argument)

    def _within(self, frame: FrameType, event: str, _: Any) -> Any:
        self._come_to(frame.f_back if event == "return" else frame)
        return self._within

    def _come_to(self, frame: FrameType | None) -> None:
        self._marks.leave(LINE, place_of(frame))
