"""Which line of the user's code is at work."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from types import CodeType, FrameType

import torch

_STANDARD_LIBRARY = tuple(
    str(Path(sysconfig.get_paths()[name]).resolve()) + "/" for name in ("stdlib", "platstdlib")
)
_LIBRARIES = tuple(str(Path(file).resolve().parent) + "/" for file in (torch.__file__, __file__))
_user_code: dict[int, tuple[CodeType, str | None]] = {}
"""Files of user code by the address of a code object, which is kept alive: hashing one takes a while."""

_WITHIN = 2
"""Frames of this package between the user's code and what counts, at least."""


def user_line(within: int = _WITHIN) -> tuple[str, int, str]:
    """File, line and function of the innermost frame outside torch, this package and the standard library.

    ``within`` frames, this one among them, are known to be the package's own. In a backward pass it is the
    line which called ``backward``.
    """
    frame: FrameType | None = sys._getframe(within)
    known = _user_code
    while frame is not None:
        code, file = known.get(id(frame.f_code)) or _remember(frame.f_code)
        if file is not None:
            return file, frame.f_lineno, code.co_name
        frame = frame.f_back
    return "<unknown>", 0, "<unknown>"


def _remember(code: CodeType) -> tuple[CodeType, str | None]:
    _user_code[id(code)] = remembered = code, code.co_filename if _is_user_code(code.co_filename) else None
    return remembered


def _is_user_code(file: str) -> bool:
    if file.startswith("<frozen"):
        return False
    resolved = str(Path(file).resolve())
    if resolved.startswith(_LIBRARIES):
        return False
    installed = "/site-packages/" in resolved or "/dist-packages/" in resolved
    return installed or not resolved.startswith(_STANDARD_LIBRARY)
