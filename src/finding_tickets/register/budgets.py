"""Budgets, as a configuration states them."""

from __future__ import annotations

from itertools import product
from typing import Annotated, Literal

import msgspec

from finding_tickets.ground.statements import Statement

# The variable that stands for the number of calls, in a budget with ``within``.
CALLS = "calls"
LOOPS = "loops"
Text = Annotated[str, msgspec.Meta(min_length=1)]
Law = Text | Annotated[int, msgspec.Meta(ge=0)]


class Allowance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A statement that may wait; two equal statements of a function need two allowances."""

    file: Text
    function: str = ""  # with its class, as in Trainer.step; empty at module level
    code: Text
    reason: Text
    owner: Text
    law: Law | None = None  # the most that it may wait
    line: int = 0  # of the configuration

    @property
    def statement(self) -> Statement:
        """Return the statement as code is searched for it."""
        return Statement(self.file, self.line, self.function, self.code)

    def __str__(self) -> str:
        """Return the place that it names."""
        return " ".join(filter(None, [self.file, self.function, f"`{self.code}`"]))


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most that a command may cost, by metric: a number, or a law in the variables of the sweep."""

    name: str = ""  # by default what runs
    run: Text
    sweep: dict[Text, Annotated[tuple[int, ...], msgspec.Meta(min_length=1)]] = {}
    # Each call of this function counts by itself, the first one not at all.
    within: Annotated[str, msgspec.Meta(pattern=r"^([^:@\s]+:[A-Za-z_][\w.]*)?$")] = ""
    only: Literal["", "loops"] = ""  # whether only what may run more than once counts
    max: dict[Text, Law] = msgspec.field(default_factory=lambda: {"syncs": 0})
    allow: tuple[Allowance, ...] = ()
    line: int = 0  # of the configuration

    @property
    def points(self) -> list[dict[str, int]]:
        """Return all combinations of the values of the sweep; a single empty one without a sweep."""
        rows = product(*(dict.fromkeys(values) for values in self.sweep.values()))
        return [dict(zip(self.sweep, row, strict=True)) for row in rows]
