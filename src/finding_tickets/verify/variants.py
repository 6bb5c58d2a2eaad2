"""The convention by which a ticket's variants are found: every file in ``fixes/<id>/`` is one.

The function is the only public one that all files of the folder define. Files are read, never imported.
"""

from __future__ import annotations

import ast
from pathlib import Path

from finding_tickets.errors import BadDataError
from finding_tickets.measure.source import Source


def find_variants(folder: str, root: Path) -> dict[str, Source]:
    """The variants in ``folder``, relative to ``root``, by the names of their files: ``found`` first.

    Raises:
        BadDataError: A file cannot be read, or the files do not share exactly one public function.
    """
    files = sorted((root / folder).glob("[!_]*.py"), key=lambda file: _rank(file.stem))
    if not files:
        return {}
    function = _shared_function(folder, {file.name: public_functions(file, root) for file in files})
    return {file.stem: Source(f"{folder}/{file.name}", function) for file in files}


def public_functions(file: Path, root: Path) -> frozenset[str]:
    """The names of the public functions at the top level of a file.

    Raises:
        BadDataError: The file cannot be read as Python.
    """
    name = file.relative_to(root).as_posix()
    try:
        tree = ast.parse(file.read_bytes(), filename=name)
    except SyntaxError as error:
        raise BadDataError(f"not Python: {error.msg}", file=name, line=error.lineno) from None
    except (OSError, ValueError) as error:
        raise BadDataError(f"cannot be read: {error}", file=name) from None
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if not node.name.startswith("_"))


def _shared_function(folder: str, public: dict[str, frozenset[str]]) -> str:
    shared = sorted(frozenset.intersection(*public.values()))
    if len(shared) == 1:
        return shared[0]
    what = f"the functions {', '.join(shared)}" if shared else "no public function"
    raise BadDataError(
        f"the variants {', '.join(public)} share {what}; they must share exactly one",
        file=folder,
        hint="name them under 'variants:' in the ticket's Remediation block",
    )


def _rank(name: str) -> tuple[int, str]:
    return {"found": 0, "recommended": 1, "applied": 2, "fix": 4}.get(name, 3), name
