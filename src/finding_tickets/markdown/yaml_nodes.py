"""YAML inside a Markdown file, as nodes that know their line in the file and report what is wrong there."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finding_tickets.markdown.source import Source
from finding_tickets.model.problem import Level

if TYPE_CHECKING:
    from yaml.nodes import Node

_TEXT_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float"))
_KINDS = {"mapping": "a mapping", "sequence": "a list", "scalar": "a single value"}
_QUOTE = "quote a value that starts with one of > | * & ! % @ { [, or that contains ': ' or ' #'"


@dataclass(frozen=True)
class YamlNode:
    """A node of YAML; ``first_line`` is the line of the file on which the YAML starts."""

    source: Source
    node: Node
    first_line: int

    @property
    def line(self) -> int:
        """The line of the file that the node starts on."""
        return self.first_line + int(self.node.start_mark.line)

    @property
    def kind(self) -> str:
        """``mapping``, ``sequence`` or ``scalar``."""
        return _kind(self.node)

    def wrong(self, rule: str, message: str, hint: str | None = None) -> None:
        """Report an error on the node's line."""
        self.source.report(rule, self.line, message, hint=hint, level=Level.ERROR)

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
        return YamlNode(self.source, node, self.first_line)

    def _is(self, kind: str, what: str) -> bool:
        if self.kind != kind:
            self.wrong("remediation-type", f"{what} must be {_KINDS[kind]}, not {_shown(self.node)}")
        return self.kind == kind


def read_yaml(source: Source, text: str, first_line: int) -> YamlNode | None:
    """The root of a YAML text that starts on ``first_line`` of the file; None where there is none."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = first_line + (mark.line if mark else 0)
        reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
        source.report("remediation-yaml", line, f"not YAML: {reason}", hint=_QUOTE, level=Level.ERROR)
        return None
    return YamlNode(source, root, first_line) if root is not None else None


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
