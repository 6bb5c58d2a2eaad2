"""Single rules applied to one document, for reports: above all, where it contradicts itself.

Lint is imported only when a document has to be looked at, which what is kept often spares.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finding_tickets.register.config import Config
from finding_tickets.register.files import file_in

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.ticket import Problem
    from finding_tickets.register.entries import Entry
    from finding_tickets.register.files import File
    from finding_tickets.register.load import Register

# The rules that compare what one document says in several places, and look at nothing else.
CONTRADICTIONS = (
    "contradiction",
    "folder",
    "severity-changed",
    "done-but-open",
    "contrary-reviews",
)


def contradictions_of(
    register: Register, entry: Entry
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the problems of a document that contradicts itself, as JSON has them, and the ignored rules.

    They are kept with what was read of the document.
    """

    def look(file: File) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        from finding_tickets.documents.reading import ignored_rules

        data = Path(file.place).read_bytes()
        # They rest on the words of the register, and on nothing else that it configures.
        config = Config(vocabulary=register.config.vocabulary)
        found = problems_of(
            register.document(entry), data, Path(), config, CONTRADICTIONS
        )
        return [problem.model_dump(mode="json") for problem in found], ignored_rules(
            data
        )

    kept = register.kept("contradictions", tuple[list[dict[str, Any]], tuple[str, ...]])
    found, ignored = kept.get(file_in(register.root, entry.path), look)
    return found, ignored


def problems_of(
    document: Document, data: bytes, root: Path, config: Config, rules: Collection[str]
) -> tuple[Problem, ...]:
    """Return the problems that these rules, which look at one document alone, find in it."""
    from finding_tickets.documents.source import Source
    from finding_tickets.lint.engine import examine
    from finding_tickets.lint.rules import RULES, Context
    from finding_tickets.register.load import Register

    context = Context(Register.of(root, config, [document]))
    source = Source(document.path, data, config.vocabulary)
    found = examine(source, document, (), context, [RULES[name] for name in rules])
    return tuple(breach.problem for breach in found if breach.problem.rule in rules)
