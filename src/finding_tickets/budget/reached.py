"""Which allowances a process has reached: their statements report when they run.

Tracing would take longer than the tests. The files of allowances are compiled with a call before each of
their statements instead; lines stay as they are, and nothing is written.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from finding_tickets.budget.judge import is_place
from finding_tickets.budget.statements import Statement, nodes_of
from finding_tickets.register.budgets import Allowance

_NAME = "__tickets_reached__"
_BODIES = ("body", "orelse", "finalbody")


class Reached(MetaPathFinder):
    """Follows the allowances by their numbers, in the modules that are imported while it is installed."""

    def __init__(self, root: Path, allowances: Sequence[Allowance]) -> None:
        # Not known of these: their files were imported before, or another loader compiles them, as pytest
        # does for tests.
        self.unseen: set[int] = set()
        self._root, self._allowances = root.resolve(), allowances
        self._seen: set[int] = set()

    def install(self) -> None:
        """Follow what is imported from now on."""
        for module in [*sys.modules.values()]:
            # Asking a module that loads its attributes late would load them.
            if file := getattr(module, "__dict__", {}).get("__file__"):
                self.unseen |= self._of_file(file).keys()
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Follow no more imports."""
        sys.meta_path.remove(self)

    def take(self) -> list[int]:
        """The numbers of the allowances that were reached since the last time."""
        found = sorted(self._seen)
        self._seen.difference_update(found)
        return found

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the others find, with a loader that adds the calls."""
        for finder in [*sys.meta_path]:
            find: Any = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find else None
            if spec is None:
                continue
            if spec.origin and (wanted := self._of_file(spec.origin)):
                if type(spec.loader) is SourceFileLoader:
                    spec.loader = _ReportingLoader(name, spec.origin, wanted, self._seen)
                else:
                    self.unseen |= wanted.keys()
            return spec
        return None

    def _of_file(self, file: str) -> dict[int, Allowance]:
        """The allowances for code of a file."""
        path = Path(file).resolve()
        if not path.is_relative_to(self._root):
            return {}
        relative = path.relative_to(self._root).as_posix()
        return {
            number: each
            for number, each in enumerate(self._allowances)
            if each.file == relative or (each.file.endswith("/") and relative.startswith(each.file))
        }


class _ReportingLoader(SourceFileLoader):
    """Compiles a module with a call before each statement that is to report."""

    def __init__(self, name: str, path: str, wanted: dict[int, Allowance], seen: set[int]) -> None:
        super().__init__(name, path)
        self._wanted, self._seen = wanted, seen

    def path_stats(self, path: str) -> Any:
        """Neither read nor write compiled code: it lacks the calls, or others would run them."""
        raise OSError(path)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, in which the calls find what they call."""
        vars(module)[_NAME] = self._seen.add
        super().exec_module(module)

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        """The code of the module, with the calls."""
        tree = ast.parse(data, path)
        calls: dict[int, list[int]] = {}
        statements = [*nodes_of(tree)]
        for number, allowance in self._wanted.items():
            for node in _reporting(statements, allowance):
                calls.setdefault(id(node), []).append(number)
        for parent in ast.walk(tree):
            for field in _BODIES:
                body = getattr(parent, field, None)
                if isinstance(body, list):
                    body[:] = [
                        each for node in body for each in (*_calls(node, calls.get(id(node), ())), node)
                    ]
        code: CodeType = compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)
        return code


def _reporting(statements: Sequence[tuple[ast.AST, Statement]], allowance: Allowance) -> Iterator[ast.AST]:
    """The statement of an allowance; or the first one of each of its functions."""
    for node, statement in statements:
        if allowance.text:
            # What has to come first in a file stays there; none of it waits.
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            is_first = is_text or isinstance(node, ast.ImportFrom)
            if is_place(allowance, statement) and not is_first:
                yield node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{statement.function}.{node.name}.".lstrip(".")
            if not allowance.function or name.startswith(f"{allowance.function}."):
                is_documented = ast.get_docstring(node, clean=False) is not None
                yield from node.body[is_documented : is_documented + 1]


def _calls(node: ast.AST, numbers: Sequence[int]) -> Iterator[ast.stmt]:
    for number in numbers:
        call = ast.Call(ast.Name(_NAME, ast.Load()), [ast.Constant(number)], [])
        yield ast.fix_missing_locations(ast.copy_location(ast.Expr(call), node))
