"""What records are made of: values that remember where they stand in their file.

A document is read into hundreds of them, which are frozen dataclasses; what is kept as data, and must be
checked when it is loaded, is a pydantic model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")


class Record(BaseModel):
    """A frozen value; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Span(NamedTuple):
    """A half-open range of byte offsets ``[start, end)`` in a file, and the line (from 1) it starts on."""

    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of a file as it was written: ``raw`` is exactly the bytes of ``span``, decoded."""

    raw: str
    span: Span


@dataclass(frozen=True, slots=True)
class Field(Text, Generic[T]):
    """A piece of a file with the value read from it."""

    value: T
