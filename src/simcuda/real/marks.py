"""Marks that Python leaves in the profiler's trace, so that one clock orders them and the calls of CUDA.

They show where the measured block begins and ends, and which line of user code runs.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from simcuda import ledger
from simcuda.ledger import NOWHERE, following_regions

Place = tuple[str, int, str]
"""File, line and function."""

MARK = "simcuda "
"""The prefix of our own marks in the trace."""
BEGIN = "begin"
END = "end"
LINE = "line"
REGION = "allowed"

is_user_code = functools.cache(ledger.is_user_code)


def mark(text: str) -> AbstractContextManager[object]:
    """Show the block as one event of that name in the profiler, if one runs."""
    context: AbstractContextManager[object] = torch._C._profiler._RecordFunctionFast(
        MARK + text
    )
    return context


def place_of(frame: FrameType | None) -> Place:
    """The innermost line of user code from a frame outwards."""
    while frame is not None:
        if is_user_code(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back
    return NOWHERE


@dataclass(eq=False)
class Marks:
    """Leaves the marks of one measured block.

    Attributes:
        places: What the numbers in marks stand for.
    """

    places: list[Place] = field(default_factory=list)
    _numbers: dict[Place, int] = field(default_factory=dict)

    def following_regions(self) -> AbstractContextManager[None]:
        """Leave a mark whenever a region is entered or left; the place of a region is its reason."""
        return following_regions(lambda reason: self.leave(REGION, (reason, 0, "")))

    @contextmanager
    def following_lines(self) -> Iterator[None]:
        """Leave a mark whenever this thread reaches another line of user code.

        If a debugger or a coverage tool traces the thread already, it keeps doing so instead.
        """
        if sys.gettrace() is not None:
            yield
            return

        # Python asks the first function about every call, and in user code the second about every line.
        def called(frame: FrameType, event: str, argument: Any) -> Any:
            return (
                within(frame, event, argument)
                if is_user_code(frame.f_code.co_filename)
                else None
            )

        def within(frame: FrameType, event: str, _: Any) -> Any:
            self.leave(LINE, place_of(frame.f_back if event == "return" else frame))
            return within

        # Functions that already run are traced only if this is set on each of their frames.
        under_way: list[FrameType] = []
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            if is_user_code(frame.f_code.co_filename):
                frame.f_trace = within
                under_way.append(frame)
            frame = frame.f_back
        self.leave(LINE, place_of(sys._getframe()))
        sys.settrace(called)
        try:
            yield
        finally:
            sys.settrace(None)
            for frame in under_way:
                frame.f_trace = None

    def leave(self, kind: str, place: Place) -> None:
        """Leave a mark of a place: a ``LINE`` or a ``REGION``."""
        number = self._numbers.setdefault(place, len(self.places))
        if number == len(self.places):
            self.places.append(place)
        with mark(f"{kind} {number}"):
            pass
