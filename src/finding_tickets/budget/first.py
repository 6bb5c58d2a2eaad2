"""Write a first budget: it allows the waits that are there, and no others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import ceil
from pathlib import Path

import msgspec

from finding_tickets.budget.rules import MEMORY, Judged
from finding_tickets.claims.laws import fit
from finding_tickets.claims.metrics import OF_STATEMENTS
from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import FileEdit, create, rewrite
from finding_tickets.ground.git import last_author
from finding_tickets.ground.statements import Statement
from finding_tickets.register.budgets import Allowance, Budget, Law
from finding_tickets.register.config import (
    CONFIG_FILE,
    PROJECT_FILE,
    config_file_of,
    config_from,
)

# How many times what is used a limit of memory is, so that another small tensor does not exceed it.
ROOM = 1.05


def first_budget(judged: Judged, root: Path) -> Budget:
    """Return the budget that allows every wait that counts, and limits the rest to what is there."""
    budget = judged.budget
    allow = []
    for statement in judged.statements():
        if judged.counts(statement, "syncs") and any(
            judged.values("syncs", 0, statement)
        ):
            allow.append(_allow(judged, statement, root))
            judged.allowed[statement] = allow[-1]
    limits: dict[str, Law] = {}
    for metric in {"hazards": 0, **budget.max}:
        values = judged.values(metric, 0)
        if metric in budget.max or any(values):
            limits[metric] = _limit(judged, metric, values)
    return msgspec.structs.replace(budget, max=limits, allow=tuple(allow))


def add_budget(root: Path, budget: Budget, *, dry_run: bool) -> tuple[str, str]:
    """Append a budget to the configuration, and return the file and the added text.

    Raises:
        BadDataError: The file cannot be written, or would not be a configuration.
    """
    file = config_file_of(root) or CONFIG_FILE
    text = _as_toml(budget, "tool.tickets.budget" if file == PROJECT_FILE else "budget")

    def append(data: bytes) -> bytes:
        gap = b"\n" if data.endswith(b"\n") else b"\n\n"
        added = data + (gap if data else b"") + text.encode()
        if budget.name not in [
            each.name for each in config_from(root, {file: added}).budgets
        ]:
            raise BadDataError("no table can be added at the end", file=file)
        return added

    if (root / file).exists():
        rewrite(root, [FileEdit(file, append)], dry_run=dry_run)
    elif not dry_run:
        create(root, {file: append(b"").decode()})
    return file, text


def _allow(judged: Judged, statement: Statement, root: Path) -> Allowance:
    """Return an allowance for a statement, with its law if a sweep shows one."""
    values = judged.values("syncs", 0, statement)
    points = judged.budget.points
    law: Law | None = fit(points, values, points).law if len(points) > 1 else None
    return Allowance(
        file=statement.file,
        function=statement.function,
        code=statement.code,
        reason="as found",
        owner=last_author(root, statement.file, statement.line) or "nobody yet",
        law=law,
    )


def _limit(judged: Judged, metric: str, values: Sequence[int]) -> Law:
    """Return values as a law, or else their largest; with some room if they are memory."""
    points = judged.budget.points
    law = fit(points, values, points).law if len(set(values)) > 1 else None
    if metric.startswith(MEMORY) and metric not in OF_STATEMENTS and any(values):
        return f"{ROOM}*({law})" if law else ceil(ROOM * max(values))
    return law or max(values)


def _as_toml(budget: Budget, header: str) -> str:
    """Return a budget as TOML, with a header for each allowance."""
    lines = [f"[[{header}]]"]
    for key in ("name", "run", "within", "only"):
        if value := getattr(budget, key):
            lines.append(f"{key} = {json.dumps(value)}")
    if budget.sweep:
        sweep = ", ".join(
            f"{name} = {list(values)}" for name, values in budget.sweep.items()
        )
        lines.append(f"sweep = {{{sweep}}}")
    limits = ", ".join(
        f"{metric} = {json.dumps(law)}" for metric, law in budget.max.items()
    )
    lines.append(f"max = {{{limits}}}")
    for allowance in budget.allow:
        lines += ["", f"[[{header}.allow]]"]
        for key, value in msgspec.structs.asdict(allowance).items():
            if key != "line" and value not in ("", None):
                lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"
