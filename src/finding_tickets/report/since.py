"""What is different in a register from what it was at a revision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from finding_tickets.errors import UsageError
from finding_tickets.ground.checkouts import Checkouts, RevisionError
from finding_tickets.ground.git import GitError
from finding_tickets.register import row as register
from finding_tickets.register.convention import safe_name
from finding_tickets.register.query import Facts, Measured
from finding_tickets.register.revision import config_at, rows_at
from finding_tickets.report.contexts import Changed, Since
from finding_tickets.report.rows import Row, row_of
from finding_tickets.verify.recorded import changes

COMPARED = ("severity", "disposition")


def since(
    revision: str, facts: Facts, rows: Sequence[Row], is_meant: Callable[[register.Row], bool]
) -> Since:
    """What became of ``rows`` since a revision; of those that are gone, ``is_meant`` says which count.

    Raises:
        UsageError: There is no such revision, or no history.
    """
    try:
        commit = Checkouts(facts.root).revision(revision).commit
        past = config_at(facts.root, commit)
        before = rows_at(facts.root, facts.config, commit, facts.rows, past.tickets)
        verdicts = changes(facts.root, facts.config.evidence, commit, past.evidence)
    except (RevisionError, GitError) as error:
        raise UsageError(f"--since {revision}: {error}") from None
    then = {row.id.casefold(): row for row in reversed(before)}
    # Of two documents with one ID, each is what it was under its path.
    then_at = {(row.id.casefold(), row.path): row for row in before}
    here = {row.id.casefold() for row in facts.rows}
    return Since(
        revision=revision,
        commit=commit,
        added=tuple(row.id for row in rows if row.id.casefold() not in then),
        removed=tuple(row.id for key, row in reversed(then.items()) if key not in here and is_meant(row)),
        changed=tuple(
            change
            for row in rows
            if (stated := then_at.get((row.id.casefold(), row.path), then.get(row.id.casefold())))
            for change in _changes(row, stated, verdicts.get(safe_name(row.id)))
        ),
    )


def _changes(row: Row, stated: register.Row, verdicts: tuple[str, str] | None) -> Iterator[Changed]:
    before = row_of(stated, Measured())
    for what in COMPARED:
        old, new = getattr(before, what), getattr(row, what)
        if old != new:
            yield Changed(row.id, what, old, new)
    if verdicts and verdicts[0] != verdicts[1]:
        yield Changed(row.id, "verdict", *verdicts)
