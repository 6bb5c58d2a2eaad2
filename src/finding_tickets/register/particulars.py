"""What a report needs of a document beyond its row: where it contradicts itself, and what it claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from finding_tickets.model.problem import Problem

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.remediation import Claim, Remediation
    from finding_tickets.model.vocabulary import Vocabulary

CONTRADICTIONS = ("contradiction", "folder", "severity-changed", "done-but-open", "contrary-reviews")
"""The lint rules that compare what one document says in several places, and look at nothing else."""


class Claimed(NamedTuple):
    """A claim of a remediation; ``where`` are the points of the sweep at which it is made if not at all."""

    variant: str
    metric: str
    value: str
    where: str = ""

    @property
    def text(self) -> str:
        """The value, and where it is claimed."""
        return f"{self.value} where {self.where}" if self.where else self.value


class Particulars(NamedTuple):
    """What of one document only reports ask for; most documents have none of it.

    Attributes:
        contradictions: What the rules of ``CONTRADICTIONS`` say that no comment has them ignore.
        ignored: The rules that a comment has lint ignore in it, with a reason.
        claims: Those of its remediation, in their order.
    """

    contradictions: tuple[Problem, ...] = ()
    ignored: tuple[str, ...] = ()
    claims: tuple[Claimed, ...] = ()


NONE = Particulars()


def particulars_of(document: Document, data: bytes, vocabulary: Vocabulary) -> Particulars:
    """The particulars of a document, given the bytes of its file."""
    from finding_tickets.documents.source import Source
    from finding_tickets.lint.engine import examine
    from finding_tickets.lint.rules import RULES, Context
    from finding_tickets.lint.suppression import suppressions
    from finding_tickets.register.config import Config
    from finding_tickets.register.load import Register

    alone = Register(Path(), Config(vocabulary=vocabulary), (document,), ())
    source = Source(document.path, data, vocabulary)
    rules = [RULES[name] for name in CONTRADICTIONS]
    found = (breach.problem for breach in examine(source, document, (), Context(alone), rules))
    return Particulars(
        tuple(problem for problem in found if problem.rule in CONTRADICTIONS),
        tuple(dict.fromkeys(name for each in suppressions(source) if each.reason for name in each.rules)),
        claims_of(document.remediation),
    )


def claims_of(remediation: Remediation | None) -> tuple[Claimed, ...]:
    """What a remediation claims."""
    return tuple(map(claimed, remediation.claims)) if remediation else ()


def claimed(claim: Claim) -> Claimed:
    """A claim without what only a measurement needs."""
    where = ", ".join(f"{name} {condition}" for name, condition in claim.at.items())
    return Claimed(claim.variant, claim.metric, claim.value, where)


def text_of(claim: Claim) -> str:
    """What is claimed, and where."""
    return claimed(claim).text
