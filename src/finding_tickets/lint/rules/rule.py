"""Lint rules, and what they may ask about the register as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NamedTuple

from finding_tickets.documents.reading import Document
from finding_tickets.documents.source import Source, Splice
from finding_tickets.lint.worktree import LEAST_LIKENESS, WorkTree
from finding_tickets.model.ticket import Problem, Span, Ticket
from finding_tickets.model.vocabulary import REMEDIATION_RULES, Level
from finding_tickets.register.entries import Entry, StatementKey
from finding_tickets.register.load import Register, files_of
from finding_tickets.register.new import numbers
from finding_tickets.register.staleness import Verdicts, code_inputs


class Remark(NamedTuple):
    """A remark of a rule about one place: a span of the document's file, or a line of its remediation's file.

    ``fix`` has the splices of the document's file that fix it, if that takes no judgement.
    """

    rule: str
    place: Span | int
    message: str
    hint: str | None = None
    fix: Sequence[Splice] = ()


Check = Callable[[Any, "Context"], Iterator[Remark]]
Fix = Callable[[Source, Problem], Sequence[Splice]]


@dataclass(frozen=True)
class Rule:
    """A check for one kind of problem, and its fix; ``examples/`` says why, with examples."""

    id: str  # what people write to name the rule
    level: Level  # how much a breach matters; only errors fail the gate
    bad_data: bool = (
        False  # whether a breach makes the register unreadable rather than merely wrong
    )
    fixable: bool = False  # whether some breaches can be fixed without judgement
    check: Check | None = (
        None  # yields a remark for every breach; None where the reader reports them
    )
    fix: Fix | None = (
        None  # for a breach that the reader reports: the edits that fix it
    )
    is_reported: bool = False  # whether the reader reports breaches
    of: type = object  # the kind of documents that are checked


# All rules by their ID, once the modules that hold them are imported.
RULES: dict[str, Rule] = {}


def check(*rules: Rule, of: type = object) -> Callable[[Check], Check]:
    """Register rules whose breaches the decorated function finds; ``of`` is the kind of its documents."""

    def register(function: Check) -> Check:
        RULES.update((rule.id, replace(rule, check=function, of=of)) for rule in rules)
        return function

    return register


class Context:
    """The documents of a register by ID, and its repository. What needs all documents is computed once."""

    def __init__(self, register: Register) -> None:
        self.root = register.root
        self.vocabulary = register.config.vocabulary
        self.code = WorkTree(register.root)
        self._register, self._verdicts = (
            register,
            Verdicts(register.root, register.config.evidence),
        )
        self._by_id: dict[str, list[Document]] = defaultdict(list)
        self._by_file: dict[str, list[Problem]] = defaultdict(list)
        for document in register.documents:
            self._by_id[document.id.value.casefold()].append(document)
        for problem in register.problems:
            self._by_file[problem.file].append(problem)

    def source(self, path: str) -> Source:
        """Return a file of the register as it is now; empty where it is gone."""
        file = self.root / path
        return Source(
            path, file.read_bytes() if file.is_file() else b"", self.vocabulary
        )

    def named(self, document_id: str) -> Sequence[Document]:
        """Return the documents with this ID in any case; more than one is a mistake."""
        return self._by_id.get(document_id.casefold(), ())

    def suggestion(self, document_id: str) -> str | None:
        """Return a hint with IDs like one that does not exist. Other numbers of its series are not alike."""
        key = document_id.casefold()
        alike = [known for known in self._by_id if numbers(known) == numbers(key)]
        close = get_close_matches(key, alike, cutoff=LEAST_LIKENESS)
        names = [self._by_id[each][0].id.value for each in close]
        return f"did you mean {', '.join(names)}?" if names else None

    def reported(self, document: Document) -> Sequence[Problem]:
        """Return the problems that reading the document and its remediation reported."""
        return [
            problem
            for file in sorted(files_of(document))
            for problem in self._by_file.get(file, ())
        ]

    def understood(self, document: Document) -> bool:
        """Return True if all of the Remediation block was; else what seems missing may stand in the rest."""
        return not any(
            problem.rule.startswith(REMEDIATION_RULES)
            for problem in self.reported(document)
        )

    def verdict(self, document: Document) -> str | None:
        """Return the verdict that was recorded for a document, fresh or not; None without evidence."""
        code = code_inputs(document.remediation)
        current = self._verdicts.current(document.id.value, code)
        return current.evidence.verdict.value if current.evidence else None

    @cached_property
    def related(self) -> Collection[tuple[str, str]]:
        """Pairs of IDs, in lower case: the ticket of the first names the second."""
        pairs = set()
        for document in self._register.documents:
            if isinstance(document, Ticket):
                own = document.id.value.casefold()
                pairs |= {
                    (own, relation.id.casefold()) for relation in document.related
                }
        return pairs

    @property
    def places(self) -> Mapping[StatementKey, Entry]:
        """The first open ticket about each statement."""
        return self._register.places
