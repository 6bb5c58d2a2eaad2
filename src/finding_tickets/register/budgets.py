"""Budgets, as a configuration states them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import product
from typing import Annotated

import msgspec

from finding_tickets.model.vocabulary import DATE

Text = Annotated[str, msgspec.Meta(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """Code of a budget that may spend: a statement, or what is left out of its place, all of it.

    ``text`` is the statement; ``occurrence`` counts equal ones in the function, from 1.
    """

    file: Text  # or a folder, with / at its end
    function: str = ""  # with its class, as in Trainer.step
    text: str = ""
    occurrence: Annotated[int, msgspec.Meta(ge=1)] | None = None
    what: tuple[Text, ...] = ()  # metrics; none are all of a place
    law: str = ""  # the most that it may spend of each of them
    owner: str = ""
    reason: Text
    until: str = ""  # a date, or the ID of a ticket whose closing ends it
    line: int = 0  # of the configuration

    def __str__(self) -> str:
        """The place that it names."""
        names = [self.file, self.function, f"`{self.text}`" if self.text else ""]
        return " ".join(filter(None, names)) + (f" ({self.occurrence})" if self.occurrence else "")

    @property
    def last_day(self) -> date | None:
        """The day until which it counts; None without one, or where a ticket ends it."""
        return date.fromisoformat(self.until) if DATE.fullmatch(self.until) else None


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a command may spend; each limit is a number or a law in the variables of the sweep."""

    name: str = ""  # in the configuration the command stands in for it
    run: Text
    sweep: Mapping[Text, tuple[int, ...]] = field(default_factory=dict)
    within: str = ""  # the function inside whose calls alone things count
    paths: tuple[Text, ...] = ()  # files and folders whose lines count; none are all of the repository's
    limits: Mapping[Text, Text] = field(default_factory=dict)  # by metric
    allow: tuple[Allowance, ...] = ()
    line: int = 0  # of the configuration

    @property
    def points(self) -> tuple[dict[str, int], ...]:
        """All combinations of the values of the sweep; none for no sweep."""
        rows = product(*(dict.fromkeys(values) for values in self.sweep.values()))
        return tuple(dict(zip(self.sweep, row, strict=True)) for row in rows) if self.sweep else ()
