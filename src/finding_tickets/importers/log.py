"""Reading a log in SARIF; what is wrong with one is said with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import DecodeError, Raw, Struct, ValidationError
from msgspec.json import decode

from finding_tickets.errors import BadDataError
from finding_tickets.importers.sarif import VERSION, Part, Result, Run

_OFFSET = re.compile(r" \(byte (\d+)\)$")
_TYPE_ERROR = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<place>.*)`)?", re.DOTALL)

P = TypeVar("P", bound=Part)


class _Head(Struct, frozen=True):
    version: Any = None
    runs: list[Raw] | None = None


@dataclass(frozen=True)
class Log:
    """The runs of a log; ``data`` is all of it in UTF-8, ``source`` names where it came from."""

    source: str
    data: bytes
    runs: tuple[Run, ...]

    def results(self, number: int) -> Iterator[Result]:
        """The results of one of the runs, each made when it is asked for.

        Raises:
            BadDataError: One is no result of SARIF; the message has its place and line.
        """
        for at, piece in enumerate(self.runs[number].results or ()):
            yield _part(piece, Result, f"runs[{number}].results[{at}]", self.data, self.source)


def read_log(data: bytes, source: str) -> Log:
    """The log in ``data``.

    Raises:
        BadDataError: It is not JSON, not SARIF, or of another version.
    """
    text = _utf8(data, source)
    try:
        head = decode(text, type=_Head)
    except ValidationError as error:
        raise BadDataError(f"not a log in SARIF: {_said(error, '')}", file=source) from None
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_json(text, source, error) from None
    if head.version != VERSION:
        stated = "no version" if head.version is None else f"version {head.version}"
        raise BadDataError(f"not a log in SARIF {VERSION}: it states {stated}", file=source)
    if head.runs is None:
        raise BadDataError("not a log in SARIF: it has no runs", file=source)
    runs = (_part(piece, Run, f"runs[{number}]", text, source) for number, piece in enumerate(head.runs))
    return Log(source, text, tuple(runs))


def _utf8(data: bytes, source: str) -> bytes:
    """The text without its byte order mark; some shells redirect output as UTF-16."""
    encoding = json.detect_encoding(data)
    if encoding == "utf-8":
        return data
    try:
        return data.decode(encoding).encode()
    except UnicodeDecodeError as error:
        raise BadDataError(f"not JSON: {error}", file=source) from None


def _not_json(text: bytes, source: str, error: Exception) -> BadDataError:
    found = _OFFSET.search(str(error))
    at = len(text) if "truncated" in str(error) else int(found[1]) if found else None
    line = None if at is None else text.count(b"\n", 0, at) + 1
    return BadDataError(f"not JSON: {_OFFSET.sub('', str(error))}", file=source, line=line)


def _part(piece: Raw, kind: type[P], place: str, data: bytes, source: str) -> P:
    try:
        return decode(piece, type=kind)
    except ValidationError as error:
        # The pieces lie in the data one after the other, so that the first of equal ones is the one to blame.
        line = data.count(b"\n", 0, max(data.find(bytes(piece)), 0)) + 1
        raise BadDataError(f"not a log in SARIF: {_said(error, place)}", file=source, line=line) from None
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDataError(f"not JSON: {place}: {error}", file=source) from None


def _said(error: ValidationError, place: str) -> str:
    """What msgspec found, behind the place in the whole log."""
    found = _TYPE_ERROR.fullmatch(str(error))
    what, within = (found["what"], found["place"] or "") if found else (str(error), "")
    path = (place + within).removeprefix(".")
    expected = what.replace(" | null", "").replace("Expected", "expected", 1)
    return f"{path}: {expected}" if path else expected
