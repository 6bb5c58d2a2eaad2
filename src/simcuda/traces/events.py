"""The events of a trace in Chrome's JSON, read one at a time from a file that may be large."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHUNK = 1 << 20
LARGEST_VALUE = 64 << 20
"""Characters of one event or one value beside the events; what is longer was not written by a profiler."""
LARGEST_TEXT = 4 << 30
"""Characters of a whole trace. What is kept of them takes about as many bytes of memory."""
# Profilers write names of users' code without escaping their control characters.
_DECODER = json.JSONDecoder(strict=False)
SPACES = re.compile(r"\s*")


class NotATraceError(ValueError):
    """The file is not a readable trace of PyTorch on CUDA, or only a part of one."""


@dataclass(eq=False)
class EventFile:
    """A file of events, as JSON or gzip; only a part of it is in memory.

    Attributes:
        path: The file.
        read: How many events were read so far.
        metadata: What stands beside the events; whole once all events were read.
    """

    path: Path
    read: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    _text: str = ""
    _at: int = 0
    _loaded: int = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The events in the order of the file, once.

        Raises:
            NotATraceError: The file is no JSON, ends in the middle or is too large.
            OSError: It cannot be opened.
        """
        with self.path.open("rb") as file:
            opened = gzip.open if file.read(2) == b"\x1f\x8b" else open
        try:
            with opened(self.path, "rt", encoding="utf-8", errors="replace") as source:
                self._source = source
                yield from self._events()
        except NotATraceError:
            raise
        except (
            ValueError,
            EOFError,
            gzip.BadGzipFile,
            zlib.error,
            RecursionError,
        ) as error:
            raise NotATraceError(
                f"cut or damaged after {self.read} events: {error}"
            ) from None

    def _events(self) -> Iterator[dict[str, Any]]:
        if self._skip("["):
            yield from self._listed()
            return
        if not self._skip("{"):
            raise ValueError("no JSON object at the beginning")
        for _ in self._parts("}"):
            key = self._next()
            self._expect(":")
            if key == "traceEvents" and self._skip("["):
                yield from self._listed()
            else:
                self.metadata[str(key)] = self._next()

    def _listed(self) -> Iterator[dict[str, Any]]:
        for _ in self._parts("]"):
            event = self._next()
            self.read += 1
            if isinstance(event, dict):
                yield event

    def _parts(self, closing: str) -> Iterator[None]:
        """Stop before each part of a list or an object, until its end."""
        while not self._skip(closing):
            yield
            if not self._skip(","):
                self._expect(closing)
                return

    def _skip(self, character: str) -> bool:
        """Step over a character and the white space before it, if it comes next."""
        while True:
            self._at = SPACES.match(self._text, self._at).end()  # type: ignore[union-attr]  # matches nothing, too
            if self._at < len(self._text) or not self._load():
                break
        found = self._text.startswith(character, self._at)
        self._at += found
        return found

    def _expect(self, character: str) -> None:
        """Step over the character that must come next; raise ``ValueError`` if it does not."""
        if not self._skip(character):
            found = self._text[self._at : self._at + 1]
            raise ValueError(
                f"{found!r} instead of {character!r}" if found else "the file ends"
            )

    def _next(self) -> Any:
        """The value that comes next."""
        self._skip("\0")
        is_whole = False
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if is_whole or len(self._text) - self._at > LARGEST_VALUE:
                    raise ValueError(
                        "the file ends" if is_whole else error.msg
                    ) from None
            else:
                # A number may go on in what is not loaded yet.
                if is_whole or end < len(self._text):
                    self._at = end
                    return value
            is_whole = not self._load()

    def _load(self) -> bool:
        rest = self._text[self._at :]
        # As much again as is left, so that a long value is not tried too often.
        more = self._source.read(max(CHUNK, len(rest)))
        self._loaded += len(more)
        if self._loaded > LARGEST_TEXT:
            raise NotATraceError(
                f"larger than {LARGEST_TEXT:,} characters: record fewer steps"
            )
        self._text, self._at = rest + more, 0
        return bool(more)
