"""How a value is written, so that it looks like the one before and reads back as what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

_BOLD = "**"
_TICKS = re.compile(r"`+")
# An underscore within a word is no markup, and need not be escaped.
_SPECIAL = re.compile(r"[*`\[\]]|(?<!\w)_|_(?!\w)")
_PIPE = re.compile(r"(?<!\\)\|")
_YAML = re.compile(r"\w(?:[\w ./@+()-]*[\w./@+()-])?")
_BETWEEN = re.compile(r"`(\s*[/,;]\s*)`")


def spellings(values: Sequence[str], like: str, *, cell: bool) -> Iterator[str]:
    """Ways to write one or several values: in the markup of ``like``, bare, and as code."""
    between = _BETWEEN.search(like)
    separator = between[1] if between else ", "
    for markup in (markup_of(like), bare, code):
        written = separator.join(markup(value) for value in values)
        yield in_cell(written) if cell else written


def in_yaml(values: Sequence[str], like: str) -> Iterator[str]:
    """Ways to write one or several values of front matter, where ``like`` stands: bare, or in quotes."""
    for quote in ("", '"', "'"):
        if all(_is_yaml(value, quote) for value in values):
            written = ", ".join(f"{quote}{value}{quote}" for value in values)
            yield f"[{written}]" if len(values) > 1 or like.startswith(("[", "- ")) else written


def _is_yaml(value: str, quote: str) -> bool:
    """Whether a value between these quotes means itself, to us and to YAML."""
    return quote not in value and "\\" not in value if quote else _YAML.fullmatch(value) is not None


def in_cell(text: str) -> str:
    """A text with its pipes escaped, which would end the cell of a table."""
    return _PIPE.sub(r"\|", text)


def markup_of(like: str) -> Callable[[str], str]:
    """What ``like`` is written in: bold, code, both or neither."""
    inner = like.removeprefix(_BOLD).removesuffix(_BOLD)
    bold = _BOLD if len(inner) == len(like) - 2 * len(_BOLD) else ""
    inside = code if inner.startswith("`") and inner.endswith("`") else bare
    return lambda value: f"{bold}{inside(value)}{bold}"


def code(value: str) -> str:
    """A value as a code span, whatever it consists of."""
    longest = max((len(run) for run in _TICKS.findall(value)), default=0)
    ticks, gap = "`" * (longest + 1), " " if value.startswith("`") or value.endswith("`") else ""
    return f"{ticks}{gap}{value}{gap}{ticks}"


def bare(value: str) -> str:
    """A value as text that shows each of its characters."""
    return _SPECIAL.sub(r"\\\g<0>", value)
