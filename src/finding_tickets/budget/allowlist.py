"""Allowlists that teams keep as YAML: paths, and calls by their function, their kind and their number."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finding_tickets.budget.statements import goes_to_host, read_code, statement_at, statements_of
from finding_tickets.documents.remediation import YamlNode, YamlText
from finding_tickets.documents.source import Source
from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import inside_repository
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.budgets import Allowance

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Problem

PATTERNS = ("item", "tolist", "cpu", "numpy", "synchronize", "to_cpu", "cuda_synchronize")
WHAT = ("syncs",)
_MODULE, _LOCALS = "<module>", "<locals>."
_WILD = frozenset("*?[")
_KEYS = ("key", "owner", "reason", "expires")


@dataclass(frozen=True)
class AllowedEntry:
    """An entry of an allowlist or of a budget, and what it allows."""

    name: str  # as it is written
    line: int
    allowances: tuple[Allowance, ...]


@dataclass(frozen=True)
class _Hit:
    """A key that has the right form; without an occurrence it is about all calls that no other key names."""

    node: YamlNode
    key: str
    place: tuple[str, str, str]  # file, scope and pattern of the calls among which the occurrence counts
    occurrence: int | None
    allowance: Allowance  # of the file, so far


def read_allowlist(path: Path, root: Path) -> tuple[tuple[AllowedEntry, ...], tuple[Problem, ...]]:
    """The entries of an allowlist that name code below ``root``, and what is wrong with the others.

    Raises:
        BadDataError: The file is no allowlist.
    """
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataError(f"cannot be read: {error}", file=str(path)) from None
    source = Source(str(path), data, Vocabulary())
    top = YamlText(source, text, 1).root()
    if top is None or top.kind != "mapping" or source.problems:
        why = source.problems[0] if source.problems else None
        message = why.message if why else "is no allowlist: it has neither allow_paths nor allow_hits"
        raise BadDataError(message, file=str(path), line=why.line if why else 1)
    keys = top.mapping("the allowlist")
    if not keys.keys() & {"allow_paths", "allow_hits"}:
        raise BadDataError("has neither allow_paths nor allow_hits", file=str(path), line=1)
    paths = keys["allow_paths"].sequence("allow_paths") if "allow_paths" in keys else []
    hits = keys["allow_hits"].sequence("allow_hits") if "allow_hits" in keys else []
    entries = [*filter(None, (_of_path(each, root) for each in paths)), *_of_hits(hits, root)]
    problems = sorted(source.problems, key=lambda each: each.line)
    return tuple(sorted(entries, key=lambda each: each.line)), tuple(problems)


def joined_allowances(entries: Iterable[AllowedEntry]) -> list[dict[str, Any]]:
    """The tables of a configuration for entries; of several for one place, the owners and reasons as one."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for allowance in (each for entry in entries for each in entry.allowances):
        table = {name: value for name, value in asdict(allowance).items() if value and name != "line"}
        key = tuple(table.get(name) for name in ("file", "function", "text", "occurrence", "until"))
        same = found.setdefault(key, table)
        for name in ("owner", "reason"):
            words = dict.fromkeys(filter(None, (same.get(name), table.get(name))))
            same[name] = "; ".join(words)
    return [{**table, "what": list(table["what"])} for table in found.values()]


def _of_path(node: YamlNode, root: Path) -> AllowedEntry | None:
    values = node.mapping("a path", needed=("path", "reason"))
    path, owner, reason = (_text(values, name) for name in ("path", "owner", "reason"))
    if not path or not reason:
        return None
    if not inside_repository(path):
        node.wrong("path", f"{path} leaves the repository")
        return None
    plain = path.removesuffix("**").removesuffix("*").rstrip("/")
    if _WILD.isdisjoint(plain) and (root / plain).is_dir():
        found = [f"{plain}/"]
    elif _WILD.isdisjoint(path):
        found = [path] if (root / path).is_file() else []
    else:
        files = (file.relative_to(root).as_posix() for file in root.rglob("*.py"))
        found = sorted(file for file in files if fnmatchcase(file, path))
    if not found:
        node.wrong("path", f"{path} matches nothing")
        return None
    line = node.place[0]
    allowed = (Allowance(file=file, what=WHAT, owner=owner, reason=reason, line=line) for file in found)
    return AllowedEntry(path, line, tuple(allowed))


def _of_hits(nodes: list[YamlNode], root: Path) -> Iterator[AllowedEntry]:
    hits = [*filter(None, map(_hit, nodes))]
    # Most count from 1.
    first = 0 if any(each.occurrence == 0 for each in hits) else 1
    named = {(*each.place, each.occurrence - first) for each in hits if each.occurrence is not None}
    for each in hits:
        file, scope, pattern = each.place
        if not (root / file).is_file():
            each.node.wrong("key", f"{each.key}: there is no file {file}")
            continue
        code = read_code(root / file)
        calls = _calls(code)
        near = [known for known, kind in calls if kind == pattern and known.endswith(f".{scope}")]
        if (scope, pattern) not in calls and scope and len(near) == 1:
            scope = near[0]
        there = calls.get((scope, pattern), [])
        if each.occurrence is None:
            lines = [line for at, line in enumerate(there) if (*each.place, at) not in named]
        else:
            lines = there[each.occurrence - first : each.occurrence - first + 1]
        found = [*filter(None, (statement_at(statements_of(code), line) for line in lines))]
        if not found:
            where = scope or "the module"
            calls_there = f"{where} has {len(there)} calls of this kind"
            each.node.wrong("key", f"{each.key}: finds nothing; {calls_there}")
            continue
        allowed = (
            replace(each.allowance, function=one.function, text=one.text, occurrence=one.occurrence)
            for one in dict.fromkeys(found)
        )
        yield AllowedEntry(each.key, each.allowance.line, tuple(allowed))


def _hit(node: YamlNode) -> _Hit | None:
    values = node.mapping("an entry", needed=("key", "reason"))
    key, owner, reason, until = (_text(values, name) for name in _KEYS)
    parts = key.split(":")
    if not key or not reason:
        return None
    if len(parts) not in {3, 4} or parts[2] not in PATTERNS:
        hint = f"write path:scope:pattern[:occurrence], with one of {', '.join(PATTERNS)}"
        node.wrong("key", f"{key}: is no key", hint)
        return None
    if parts[3:] and not parts[3].isdecimal():
        node.wrong("key", f"{key}: {parts[3]!r} is no number")
        return None
    if not inside_repository(parts[0]):
        node.wrong("key", f"{parts[0]} leaves the repository")
        return None
    try:
        date.fromisoformat(until or "2000-01-01")
    except ValueError:
        node.wrong("key", f"{key}: expires: {until!r} is no date")
        return None
    scope = "" if parts[1] == _MODULE else parts[1].replace(_LOCALS, "")
    occurrence = int(parts[3]) if parts[3:] else None
    allowance = Allowance(
        file=parts[0], what=WHAT, owner=owner, reason=reason, until=until, line=node.place[0]
    )
    return _Hit(node, key, (parts[0], scope, parts[2]), occurrence, allowance)


def _text(values: Mapping[str, YamlNode], name: str) -> str:
    # An owner may be left empty, and a date is no text for YAML.
    node = values.get(name)
    if node is None or (name in {"owner", "expires"} and node.kind == "scalar"):
        return str(node.node.value) if node else ""
    return node.text(name) or ""


def _calls(code: str) -> dict[tuple[str, str], list[int]]:
    """The lines of the calls of each scope and kind; one around another comes first."""
    found: dict[tuple[str, str], list[int]] = {}

    def visit(node: ast.AST, scope: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope = f"{scope}.{node.name}".lstrip(".")
        if isinstance(node, ast.Call) and (kind := _kind(node)):
            found.setdefault((scope, kind), []).append(node.lineno)
        for child in ast.iter_child_nodes(node):
            visit(child, scope)

    try:
        visit(ast.parse(code), "")
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return found


def _kind(call: ast.Call) -> str:
    """Which of the patterns a call is; empty for none."""
    if not isinstance(call.func, ast.Attribute):
        return ""
    name = call.func.attr
    if name == "to":
        return "to_cpu" if goes_to_host(call) else ""
    if name == "synchronize":
        return "cuda_synchronize" if ast.unparse(call.func).endswith("cuda.synchronize") else name
    return name if name in PATTERNS[:4] else ""
