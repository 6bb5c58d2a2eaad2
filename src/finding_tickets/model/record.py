"""What records are made of: frozen pydantic models whose values remember where they stand in their file."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")


class Record(BaseModel):
    """A frozen value; unknown fields are refused."""

    # Validators are built on first use, so that importing the models costs next to nothing.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Span(NamedTuple):
    """A half-open range of byte offsets ``[start, end)`` in a file, and the line (from 1) it starts on."""

    start: int
    end: int
    line: int


class Text(Record):
    """A piece of a file as it was written: ``raw`` is exactly the bytes of ``span``, decoded."""

    raw: str
    span: Span


class Field(Text, Generic[T]):
    """A piece of a file with the value read from it."""

    value: T
