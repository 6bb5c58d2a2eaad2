"""What a lint rule is, and the register of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from finding_tickets.documents.reading import Document
from finding_tickets.documents.source import Source
from finding_tickets.documents.splice import Splice
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.record import Span

if TYPE_CHECKING:
    from finding_tickets.lint.rules.context import Context

TICKET = "tickets/B1-PT-01.md"
"""Where the ticket of an example stands that names no file."""


class Remark(NamedTuple):
    """What a rule has to say about one place of the document it looks at.

    ``place`` is a span of its file, or a line of the file that its remediation stands in.
    ``fix`` is what mends it, if that takes no judgement: bytes to replace in the document's file.
    """

    place: Span | int
    message: str
    hint: str | None = None
    fix: Sequence[Splice] = ()


Check = Callable[[Document, "Context"], Iterator[Remark]]
Mend = Callable[[Source, Problem], Sequence[Splice]]
Files = Mapping[str, str | bytes]


@dataclass(frozen=True)
class Rule:
    """What a register is asked for, and how a breach is found and mended.

    An example is a set of files. The text of a ticket in it is whole where it begins with a title. Otherwise
    it is what the example changes in a sound ticket: metadata rows, sections, or lines below the title.

    Attributes:
        id: What people write to name the rule.
        level: How much a breach matters; only errors fail the gate.
        reason: What is asked for, and why.
        wrong: An example that breaks this rule and no other.
        right: An example that breaks no rule; where the rule mends, what ``wrong`` becomes.
        bad_data: Whether a breach makes the register unreadable rather than merely wrong.
        mends: Whether breaches, or some of them, can be mended without judgement.
        check: Yields a remark for every breach; None where the reader or lint itself reports them.
        mend: For a breach that the reader reports: what mends it.
        is_reported: Whether the reader reports breaches.
    """

    id: str
    level: Level
    reason: str
    wrong: Files
    right: Files
    bad_data: bool = False
    mends: bool = False
    check: Check | None = None
    mend: Mend | None = None
    is_reported: bool = False


RULES: dict[str, Rule] = {}


def rule(
    name: str,
    level: Level,
    reason: str,
    *,
    wrong: str | Files,
    right: str | Files,
    bad_data: bool = False,
    mends: bool = False,
) -> Callable[[Check], Check]:
    """Register the decorated check under an id, which must be new."""

    def register(check: Check) -> Check:
        add(Rule(name, level, reason, files(wrong), files(right), bad_data, mends, check))
        return check

    return register


def reported(
    name: str, level: Level, reason: str, *, wrong: str | Files, right: str | Files, mend: Mend | None = None
) -> None:
    """Register a rule whose breaches are reported in reading; an error there is bad data."""
    bad_data, mends = level is Level.ERROR, mend is not None
    add(Rule(name, level, reason, files(wrong), files(right), bad_data, mends, mend=mend, is_reported=True))


def add(new: Rule) -> None:
    """Register a rule.

    Raises:
        ValueError: There is one of this id already.
    """
    if new.id in RULES:
        raise ValueError(f"two lint rules are called {new.id}")
    RULES[new.id] = new


def files(example: str | Files) -> Files:
    """The files of an example that may be the text of its ticket alone."""
    return {TICKET: example} if isinstance(example, str) else example
