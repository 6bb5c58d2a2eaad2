"""What an edit would change, in the form that ``git apply`` takes."""

from __future__ import annotations

from difflib import unified_diff

from finding_tickets.ground.writing import Change

_NO_NEWLINE = "\n\\ No newline at end of file\n"


def diff(change: Change) -> str:
    """The unified diff of a change; empty where there is none."""
    old, new = _lines(change.old), _lines(change.new)
    pieces = unified_diff(old, new, f"a/{change.path}", f"b/{change.path}")
    return "".join(piece if piece.endswith("\n") else piece + _NO_NEWLINE for piece in pieces)


def _lines(data: bytes) -> list[str]:
    """Lines as diff counts them: a carriage return is part of a line."""
    return [line + "\n" for line in data.decode().split("\n")[:-1]] + _last(data.decode())


def _last(text: str) -> list[str]:
    rest = text.rpartition("\n")[2]
    return [rest] if rest else []
