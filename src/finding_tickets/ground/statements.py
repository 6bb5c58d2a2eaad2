"""Find statements of Python files by file, function and code, so that moved lines are still known.

Comments and layout are not part of the code. A statement with a block is known by its head alone.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
# Completes the head of a statement to one that can be parsed.
_COMPLETIONS = ("", " pass", ": pass", "\nexcept: pass")
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")
_NOT_RENAMED = {*dir(builtins), *keyword.kwlist}


@dataclass(frozen=True, order=True)
class Statement:
    """A statement with its place. ``function`` includes the class, and is empty at module level."""

    file: str
    line: int
    function: str
    code: str
    last_line: int = 0
    loops: int = field(default=0, compare=False)  # of its function, around it

    def is_beside(self, other: Statement) -> bool:
        """Return True for a statement of the same function."""
        return (self.file, self.function) == (other.file, other.function)

    def __str__(self) -> str:
        """Return file and line."""
        return f"{self.file}:{self.line}"


def parse_file(file: Path) -> ast.Module | None:
    """Return the tree of a Python file; None if it cannot be read or parsed."""
    try:
        return _tree(file.read_bytes())
    except OSError:
        return None


def _tree(content: bytes) -> ast.Module | None:
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):
        return None


def read_statements(root: Path, file: str) -> tuple[Statement, ...]:
    """Return the statements of a file below ``root`` by line; none if it cannot be parsed."""
    try:
        return _parse(file, (root / file).read_bytes())
    except OSError:
        return ()


def find_statement(root: Path, file: str, line: int, function: str) -> Statement:
    """Return the innermost statement at a line, or a stand-in for a file that is not in the repository."""
    found = Statement(file, line, function, f"in {function}")
    if line and not Path(file).is_absolute():
        for statement in read_statements(root, file):
            if statement.line <= line <= statement.last_line:
                found = statement
    return found


@lru_cache(maxsize=4096)
def normalize(code: str) -> str:
    """Return code as ``Statement`` has it, whatever its layout."""
    # An elif is an if in the tree.
    text = re.sub(r"^elif\b", "if", code.strip())
    for completion in _COMPLETIONS:
        try:
            return _head(ast.parse(text + completion).body[0])
        except (SyntaxError, ValueError, RecursionError, IndexError):
            continue
    return " ".join(text.split())


def equal_statements(
    root: Path, file: str, function: str, code: str
) -> list[Statement]:
    """Return the statements of a function that have this code, by line."""
    beside = read_statements(root, file)
    return [
        each
        for each in beside
        if (each.function, each.code) == (function, normalize(code))
    ]


def is_renamed(old: str, new: str, code_now: str) -> bool:
    """Return True if code differs only in names, and no old name occurs in ``code_now``."""
    old_names, new_names = _NAME.findall(normalize(old)), _NAME.findall(new)
    if _NAME.sub("_", normalize(old)) != _NAME.sub("_", new):
        return False
    renamed: dict[str, str] = {}
    for before, after in zip(old_names, new_names, strict=True):
        if renamed.setdefault(before, after) != after:
            return False
    if len({*renamed.values()}) < len(renamed):
        return False
    changed = {before for before, after in renamed.items() if before != after}
    return not changed & _NOT_RENAMED and not changed & set(_NAME.findall(code_now))


def match_statements(
    known: Sequence[Statement], statements: Sequence[Statement], root: Path
) -> dict[Statement, int]:
    """Return for each statement below ``root`` that is known its place among those that are.

    Its line may have changed. Names in it, its function or its file may have been changed. Each known
    statement is matched once, so that of two equal ones both have to be known.
    """
    matched: dict[Statement, int] = {}
    for is_same in (_is_equal, _is_renamed):
        for place, other in enumerate(known):
            if place in matched.values():
                continue
            for statement in statements:
                if statement not in matched and is_same(other, statement, root):
                    matched[statement] = place
                    break
    return matched


def _is_equal(known: Statement, statement: Statement, _: Path) -> bool:
    mine, its = (known.file, known.function), (statement.file, statement.function)
    return mine == its and normalize(known.code) == statement.code


def _is_renamed(known: Statement, statement: Statement, root: Path) -> bool:
    """Return True if a statement differs from a known one in names alone."""
    if known.file != statement.file and (root / known.file).exists():
        return False
    beside = read_statements(root, statement.file)
    if known.function != statement.function and known.function in {
        each.function for each in beside
    }:
        return False
    code_now = " ".join(
        each.code for each in beside if each.function == statement.function
    )
    return normalize(known.code) == statement.code or is_renamed(
        known.code, statement.code, code_now
    )


@lru_cache(maxsize=256)
def _parse(file: str, content: bytes) -> tuple[Statement, ...]:
    tree = _tree(content)
    return tuple(sorted(_statements(file, tree.body, ""))) if tree else ()


def _statements(
    file: str, body: Sequence[ast.AST], function: str, loops: int = 0
) -> Iterator[Statement]:
    """Yield every statement below a body."""
    for node in body:
        inner, around = function, loops
        if isinstance(node, ast.stmt):
            yield Statement(
                file, node.lineno, function, _head(node), _last_line(node), loops
            )
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner, around = f"{function}.{node.name}".lstrip("."), 0
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            around += 1
        for block in _BLOCKS:
            yield from _statements(file, getattr(node, block, []), inner, around)


def _head(node: ast.AST) -> str:
    """Return the code of a statement without its block and its decorators."""
    if not hasattr(node, "body") and not hasattr(node, "cases"):
        return ast.unparse(node)
    bare = copy(node)
    for name in {*_BLOCKS, "decorator_list"} & set(node._fields):
        setattr(bare, name, [ast.Pass()] if name == "body" else [])
    return ast.unparse(bare).removesuffix("pass").strip()


def _last_line(node: ast.stmt) -> int:
    """Return the last line of a statement, or of its head."""
    body = getattr(node, "body", None) or [
        case.pattern for case in getattr(node, "cases", [])
    ]
    last = body[0].lineno - 1 if body else node.end_lineno
    return max(node.lineno, last or 0)
