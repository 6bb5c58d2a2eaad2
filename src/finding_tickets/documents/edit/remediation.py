"""Entries added to the YAML of a Remediation, in its ticket or in a file beside it; what is there stays."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from finding_tickets.documents.edit.splices import Splice, Splices, line_at, line_end
from finding_tickets.documents.remediation import YamlText
from finding_tickets.documents.source import BYTE_ORDER_MARK

Entries = Mapping[str, Any]
"""What is to be added: texts and further mappings by their keys."""

# What YAML reads as this very text, within braces too.
_PLAIN = re.compile(r"\w(?:[\w.+*/()-]|:(?=\w)| (?=[\w.+*/()-]))*")


def add_entries(yaml: YamlText, entries: Entries) -> Splices:
    """Add to a mapping of YAML what it does not have, in the style that each of its mappings has.

    A text that is there is replaced where it is another one.

    Raises:
        ValueError: The text is no mapping.
    """
    root = yaml.root()
    if root is None or root.kind != "mapping":
        raise ValueError("the Remediation says nothing yet")
    return [_splice(yaml, *each) for each in _changes(root.node, yaml.text, entries)]


def _changes(node: Any, text: str, entries: Entries) -> Iterator[tuple[int, int, str]]:
    """From where to where the text is replaced, and by what; a new line begins with a line feed."""
    there = {key.value: value for key, value in node.value}
    for key, value in entries.items():
        if key in there and isinstance(value, Mapping) and isinstance(there[key].value, list):
            yield from _changes(there[key], text, value)
        elif key in there and isinstance(value, str) and there[key].value != value:
            yield there[key].start_mark.index, _end(there[key], text), _flow(value)
    new = [f"{key}: {_flow(value)}" for key, value in entries.items() if key not in there]
    if not new:
        return
    last = _end(node.value[-1][1], text) if node.value else node.start_mark.index + 1
    if node.flow_style:
        yield last, last, (", " if node.value else "") + ", ".join(new)
    else:
        # A comment behind the last value stays there.
        end = re.compile(r"\r|\n|\Z").search(text, last)
        indent = " " * int(node.start_mark.column)
        at = end.start() if end else last
        yield at, at, "".join(f"\n{indent}{line}" for line in new)


def _end(node: Any, text: str) -> int:
    """Where the text of a node ends, without the blank lines that YAML counts as part of it."""
    if isinstance(node.value, list) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last, text)
    return len(text[: node.end_mark.index].rstrip())


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_flow(each)}' for key, each in value.items())}}}"
    return str(value) if _PLAIN.fullmatch(str(value)) else json.dumps(str(value))


def _splice(yaml: YamlText, index: int, until: int, added: str) -> Splice:
    """A change of the YAML, within one line, as one of the file, whose lines may begin with more."""
    data, number = yaml.source.data, bisect_right(yaml.line_ends, index)
    start = yaml.line_ends[number - 1] if number else 0
    own = re.split(r"[\r\n]", yaml.text[start:], maxsplit=1)[0].encode()
    line = line_at(data, yaml.source.line_starts[yaml.first_line - 1 + number])
    prefix = data[line.start : max(line.start, line.end - len(own))]
    at = line.start + len(prefix) + len(yaml.text[start:index].encode())
    begin = line_end(data, line.start) + prefix.removeprefix(BYTE_ORDER_MARK)
    return Splice(at, at + len(yaml.text[index:until].encode()), added.encode().replace(b"\n", begin))
