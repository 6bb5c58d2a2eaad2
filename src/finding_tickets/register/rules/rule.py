"""What a lint rule is, and the register of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from finding_tickets.markdown.reading import Document
from finding_tickets.model.problem import Level, Problem
from finding_tickets.register.rules.context import Context


class Remark(NamedTuple):
    """What a rule has to say about one line of the document it looks at."""

    line: int
    message: str
    hint: str | None = None


Check = Callable[[Document, Context], Iterator[Remark]]


@dataclass(frozen=True)
class Rule:
    """A check of one document against its register.

    Attributes:
        id: What people write to name the rule.
        level: How much a breach matters; only errors fail the gate.
        bad_data: Whether a breach makes the register unreadable rather than merely wrong.
        description: What the rule asks for, and why.
        example: Text that breaks it.
        check: Yields a remark for every breach.
    """

    id: str
    level: Level
    bad_data: bool
    description: str
    example: str
    check: Check

    def problems(self, document: Document, context: Context) -> Iterator[Problem]:
        """Every breach of this rule in one document."""
        for remark in self.check(document, context):
            yield Problem(
                level=self.level,
                rule=self.id,
                file=document.path,
                line=remark.line,
                message=remark.message,
                hint=remark.hint,
            )


RULES: dict[str, Rule] = {}


def rule(
    name: str, level: Level, description: str, *, example: str, bad_data: bool = False
) -> Callable[[Check], Check]:
    """Register the decorated check under an id, which must be new."""

    def register(check: Check) -> Check:
        if name in RULES:
            raise ValueError(f"two lint rules are called {name}")
        RULES[name] = Rule(name, level, bad_data, description, example, check)
        return check

    return register
