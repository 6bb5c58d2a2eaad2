"""YAML inside a Markdown file, as nodes that know their line in the file and report what is wrong there."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from finding_tickets.documents.source import Source
from finding_tickets.model.problem import Level

if TYPE_CHECKING:
    from yaml.nodes import Node

_LINE_END = re.compile(r"\r\n|\r|\n")
_DEEPEST = 50
_TEXT_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float"))
_KINDS = {"mapping": "a mapping", "sequence": "a list", "scalar": "a single value"}
_QUOTE = "quote a value that starts with one of > | * & ! % @ { [, or that contains ': ' or ' #'"

_INDENT = "indent with spaces: here is a tab"


@dataclass(frozen=True)
class YamlText:
    """A YAML text within a file, and the line of the file on which it starts."""

    source: Source
    text: str
    first_line: int

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.end() for match in _LINE_END.finditer(self.text)]

    def line(self, index: int) -> int:
        """The line of the file that holds the character at ``index``.

        YAML's own line numbers will not do: for it, other characters than Markdown's end a line too.
        """
        return self.first_line + bisect_right(self._line_ends, min(index, len(self.text.rstrip())))

    def column(self, index: int) -> int:
        """The column of the character at ``index``, from 1, where the text is not indented in the file."""
        index = min(index, len(self.text.rstrip()))
        before = bisect_right(self._line_ends, index)
        return index - (self._line_ends[before - 1] if before else 0) + 1


@dataclass(frozen=True)
class YamlNode:
    """A node of a YAML text."""

    origin: YamlText
    node: Node

    @property
    def line(self) -> int:
        """The line of the file that the node starts on."""
        return self.origin.line(self.node.start_mark.index)

    @property
    def kind(self) -> str:
        """``mapping``, ``sequence`` or ``scalar``."""
        return _kind(self.node)

    def wrong(self, rule: str, message: str, hint: str | None = None) -> None:
        """Report an error on the node's line."""
        origin = self.origin
        index = self.node.start_mark.index
        origin.source.report_line(
            rule, self.line, message, column=origin.column(index), hint=hint, level=Level.ERROR
        )

    def mapping(self, what: str, allowed: Collection[str] | None = None) -> dict[str, YamlNode]:
        """The node as a mapping; a key that is given twice or not ``allowed`` is reported and left out."""
        found: dict[str, YamlNode] = {}
        if not self._is("mapping", what):
            return found
        for key, value in self.node.value:
            name = self._beside(key).text("a key")
            if name is None:
                continue
            if name in found:
                self._beside(key).wrong("remediation-twice", f"{name!r} is given twice in {what}")
            elif allowed is not None and name not in allowed:
                self._beside(key).wrong(
                    "remediation-key", f"{what} has no {name!r}", _did_you_mean(name, allowed)
                )
            else:
                found[name] = self._beside(value)
        return found

    def sequence(self, what: str) -> Iterator[YamlNode]:
        """The items of the node as a list."""
        if self._is("sequence", what):
            for item in self.node.value:
                yield self._beside(item)

    def text(self, what: str) -> str | None:
        """The node as a string or a number, as it is written."""
        if self.kind == "scalar" and self.node.tag in _TEXT_TAGS and self.node.value.strip():
            return str(self.node.value).strip()
        self.wrong("remediation-type", f"{what} must be a text or a number, not {_shown(self.node)}")
        return None

    def _beside(self, node: Node) -> YamlNode:
        return YamlNode(self.origin, node)

    def _is(self, kind: str, what: str) -> bool:
        if self.kind != kind:
            self.wrong("remediation-type", f"{what} must be {_KINDS[kind]}, not {_shown(self.node)}")
        return self.kind == kind


def read_yaml(source: Source, text: str, first_line: int) -> YamlNode | None:
    """The root of a YAML text that starts on ``first_line`` of the file; None where there is none."""
    import yaml

    whole = YamlText(source, text, first_line)
    try:
        root = _compose(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        index = mark.index if mark else getattr(error, "position", 0)
        line, column = whole.line(index), whole.column(index)
        reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
        hint = _INDENT if text[index : index + 1] == "\t" else _QUOTE
        source.report_line(
            "remediation-yaml", line, f"not YAML: {reason}", column=column, hint=hint, level=Level.ERROR
        )
        return None
    return YamlNode(whole, root) if root is not None else None


def _compose(text: str) -> Node | None:
    """The root node; a text that nests too deeply is refused, since composing it would exhaust the stack."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            mark = event.start_mark
            raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=mark)  # type: ignore[arg-type] # the C loader has marks of its own
    root: Node | None = yaml.compose(text, Loader=loader)
    return root


def _did_you_mean(name: str, allowed: Collection[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, allowed, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(allowed)}"


def _kind(node: Node) -> str:
    return type(node).__name__.removesuffix("Node").lower()


def _shown(node: Node) -> str:
    if _kind(node) != "scalar":
        return _KINDS[_kind(node)]
    return repr(node.value) if node.value else "nothing"
