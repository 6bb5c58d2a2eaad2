"""Statements of a file of Python, by which lines of code are known whatever is edited around them.

A statement is known by its function, its text and its place among equal ones there. Comments and layout are
no part of a text, and of a statement with a block only its head is.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

# What is done with any value, and says nothing of what spends.
_COMMON = frozenset(
    (
        *("", "abs", "append", "dict", "enumerate", "extend", "format", "getattr", "isinstance", "join"),
        *("len", "list", "map", "max", "min", "print", "range", "repr", "round", "set", "sorted", "str"),
        *("sum", "tuple", "update", "zip"),
    )
)
READS = frozenset(("item", "tolist", "cpu", "numpy", "synchronize"))
"""The calls that do nothing but wait for a value."""
_SYNTAX: dict[str, tuple[type[ast.AST], ...]] = {
    "[]": (ast.Subscript,),
    "if": (ast.If, ast.IfExp, ast.While, ast.Assert),
    "for": (ast.For, ast.comprehension),
}
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(frozen=True)
class Statement:
    """A statement, or the head of one with a block, and its lines from 1."""

    function: str  # with its class, as in Trainer.step; empty for a module's own
    text: str
    occurrence: int  # among equal ones in the function, from 1
    first: int
    last: int


def read_code(path: Path) -> str:
    """The text of a file; empty where there is none."""
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


@lru_cache(maxsize=512)
def statements_of(code: str) -> tuple[Statement, ...]:
    """The statements of a file in the order of their lines; none of one that is not Python."""
    try:
        return tuple(statement for _, statement in nodes_of(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError):
        return ()


def nodes_of(tree: ast.Module) -> Iterator[tuple[ast.AST, Statement]]:
    """The statements of a file, each with its node."""
    seen: Counter[tuple[str, str]] = Counter()
    for node, function in _nodes(tree.body, ""):
        text = _head(node)
        seen[function, text] += 1
        yield node, Statement(function, text, seen[function, text], *_lines(node))


def statement_at(statements: Sequence[Statement], line: int) -> Statement | None:
    """The statement that a line is part of, the innermost one; None between statements."""
    around = [each for each in statements if each.first <= line <= each.last]
    return max(around, key=lambda each: each.first, default=None)


@lru_cache(maxsize=4096)
def normal(text: str) -> str:
    """A statement as ``statements_of`` has it, or the head of one; other text without its layout."""
    # An elif is an if, in the place where it stands.
    line = re.sub(r"^elif\b", "if", text.strip())
    for code in (line, f"{line}\n    pass", f"{line}:\n    pass", f"{line}\nexcept: pass"):
        with suppress(SyntaxError, ValueError, RecursionError, IndexError):
            return _head(ast.parse(code).body[0])
    return " ".join(line.split())


def operations_of(text: str) -> frozenset[str]:
    """What a statement does that can spend: the names that it calls, and its tests, loops and subscripts."""
    tree = _parsed(text)
    if tree is None:
        return frozenset(re.findall(r"\w+(?=\()", text)) - _COMMON
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func
            called = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
            # To the host is another operation than to a device.
            found.add("cpu" if called == "to" and goes_to_host(node) else called)
        else:
            found.update(name for name, kinds in _SYNTAX.items() if isinstance(node, kinds))
    return frozenset(found - _COMMON)


def goes_to_host(call: ast.Call) -> bool:
    """Whether a call of ``to`` names the CPU: ``to("cpu")``, ``to(device=torch.device("cpu"))``."""
    devices = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "device")]
    return any(map(_is_cpu, devices))


def _is_cpu(device: ast.expr) -> bool:
    if isinstance(device, ast.Call) and device.args:
        return ast.unparse(device.func) in {"torch.device", "device"} and _is_cpu(device.args[0])
    return isinstance(device, ast.Constant) and device.value == "cpu"


def is_name(operation: str) -> bool:
    """Whether an operation is a call, and not a test, a loop or a subscript."""
    return operation not in _SYNTAX


@lru_cache(maxsize=4096)
def shape_of(text: str) -> str:
    """A statement without its variables' names, constants and type hints; attributes keep their names."""
    tree = _parsed(text)
    if tree is None:
        return text
    if isinstance(hinted := tree.body[-1], ast.AnnAssign) and hinted.value:
        tree.body[-1] = ast.Assign([hinted.target], hinted.value, lineno=hinted.lineno)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.arg):
            setattr(node, "id" if isinstance(node, ast.Name) else "arg", "_")
        elif isinstance(node, ast.Constant):
            node.value = 0
        elif isinstance(node, ast.JoinedStr):
            # Only text may stand between its fields.
            node.values = [each for each in node.values if not isinstance(each, ast.Constant)]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.name = "_"
    return ast.unparse(tree)


def _parsed(text: str) -> ast.Module | None:
    """The tree of a statement as ``normal`` makes one; None where it is none of its own."""
    for code in (text, f"{text} pass", f"try:\n  pass\n{text} pass", f"match 0:\n {text} pass"):
        with suppress(SyntaxError, ValueError, RecursionError):
            return ast.parse(code)
    return None


def _nodes(body: Sequence[ast.AST], function: str) -> Iterator[tuple[ast.AST, str]]:
    """Every statement below a body, with the name of the function that it is in."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node, function
            yield from _nodes(node.body, f"{function}.{node.name}".lstrip("."))
            continue
        if isinstance(node, ast.stmt):
            yield node, function
        for block in _BLOCKS:
            yield from _nodes(getattr(node, block, []), function)


def _head(node: ast.AST) -> str:
    """The text of a statement without its block and its decorators."""
    if not hasattr(node, "body") and not isinstance(node, ast.Match):
        return ast.unparse(node)
    bare, blocks = copy(node), ("orelse", "finalbody", "handlers", "cases", "decorator_list")
    for name in {"body", *blocks} & set(node._fields):
        setattr(bare, name, [ast.Pass()] if name == "body" else [])
    return ast.unparse(bare).removesuffix("pass").strip()


def _lines(node: ast.AST) -> tuple[int, int]:
    first: int = node.lineno  # type: ignore[attr-defined]  # statements have lines
    decorators = getattr(node, "decorator_list", [])
    first = min([first, *(each.lineno for each in decorators)])
    body = getattr(node, "body", None) or [each.pattern for each in getattr(node, "cases", [])]
    if body:
        return first, max(first, body[0].lineno - 1)
    return first, getattr(node, "end_lineno", None) or first
