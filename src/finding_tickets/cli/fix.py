"""``tickets fix``: measure the work tree as the fix of a ticket, and write down what holds for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from finding_tickets.cli.options import (
    HERE,
    MEASURING,
    WRITING,
    Id,
    Measuring,
    Root,
    Writing,
    option,
    today,
)
from finding_tickets.cli.output import (
    Format,
    say,
    style,
    terminal_size,
    write,
    write_json,
)
from finding_tickets.cli.verify import code_of, measurable
from finding_tickets.documents.reading import Document, read_document
from finding_tickets.documents.remediation import read_sidecar
from finding_tickets.errors import ExitCode, GateError, RevisionError, UsageError
from finding_tickets.ground.commits import Checkouts, named_commits
from finding_tickets.ground.files import FileChange, fixes_folder, rewrite
from finding_tickets.ground.git import GitError
from finding_tickets.ground.statements import find_statement
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.ticket import Remediation, StatementRef, VariantRef
from finding_tickets.model.vocabulary import (
    ELSEWHERE,
    OUTCOME,
    SAME_RESULT,
    WORKTREE,
    Verdict,
)
from finding_tickets.register.actions import add_to_remediation, add_to_sidecar, edit_of
from finding_tickets.register.entries import entry_of
from finding_tickets.register.load import Register, load
from finding_tickets.report.verification import deciding_changes, verification_lines
from finding_tickets.verify.judge import (
    FIX,
    FOUND,
    check,
    claim_same_result,
    find_race,
    propose,
    result_difference,
    trouble,
)
from finding_tickets.verify.plan import plan, stated_in, verifier_of
from finding_tickets.verify.verify import (
    MeasuredPlan,
    Settings,
    Verified,
    conclude,
    is_unchanged,
    measure_one,
    with_meter,
)

if TYPE_CHECKING:
    from pathlib import Path

    from finding_tickets.model.verification import ClaimResult, MeasuredTicket


def fix(
    ticket: Id,
    root: Root = HERE,
    moved: Annotated[
        list[str] | None,
        option(
            "FILE:LINE", "A line of the fix that waits instead, and less (repeatable)."
        ),
    ] = None,
    how: Measuring = MEASURING,
    writing: Writing = WRITING,
) -> ExitCode:
    """Measure the work tree as the fix; add its claims."""
    dry_run = writing.dry_run
    # Loading torch takes longer than reading the ticket.
    with Isolation() as isolation:
        register = load(root)
        sound, code = measurable(register, [register.find(ticket)])
        if not sound:
            return code
        trial = FixTrial(register, sound[0], moved or (), dry_run=dry_run)
        settings = how.settings(register, outcomes=True, record=not dry_run)
        say(f"measuring {trial.id}")
        done = trial.measure(isolation, settings)
    if done.error:
        raise done.error
    change, shown = trial.change, done.verification
    if writing.output_format is Format.JSON:
        written = (
            {"path": change.path, "diff": change.diff(), "written": not dry_run}
            if change
            else None
        )
        verification = shown.model_dump(mode="json") if shown else None
        write_json("fix", [{"edit": written, "verification": verification}])
    elif change and dry_run:
        write(change.diff())
        for each in deciding_changes(shown) if shown else ():
            say(f"{each.metric}: {each.text}")
    elif shown:
        width = terminal_size(sys.stdout).columns
        write("\n".join(verification_lines(shown, style, width, is_brief=True)))
    if not change:
        is_reproduced = shown and shown.verdict is Verdict.REPRODUCED
        then = "; change the code, then try again" if is_reproduced else ""
        say(f"{trial.id}: nothing was written{then}")
    elif not dry_run:
        said = (
            "has the fix and its claims now"
            if change.old != change.new
            else "has the fix already"
        )
        say(f"{trial.id}: {change.path} {said}")
    return ExitCode.worst(
        code, code_of(done), ExitCode.OK if change else ExitCode.INCONCLUSIVE
    )


class FixTrial:
    """A ticket with the work tree as its fix, before it is known what holds for that.

    Raises:
        UsageError: There is nothing that the work tree could be the fix of.
    """

    def __init__(
        self,
        register: Register,
        document: Document,
        moved: Sequence[str] = (),
        *,
        dry_run: bool,
    ) -> None:
        self.id = document.id.value
        self.change: FileChange | None = None
        self._register, self._stated, self._dry_run = register, document, dry_run
        before = self._before = stated_in(document)
        if not document.remediation or verifier_of(document, register.root) is None:
            hint = f"tickets probe TARGET --for {self.id}, or docs/tickets.md"
            raise UsageError(
                f"{self.id} has no Remediation with run or a verifier", hint=hint
            )
        self._added = added_variants(self.id, before, register.root)
        claims = before.claims
        if not before.run and not any(
            each.variant == FIX and each.metric == SAME_RESULT for each in claims
        ):
            claims += (_CLAIM,)
        added = {name: _ref(raw) for name, raw in self._added.items()}
        self._moved = [
            _statement(self.id, before, line, register.root) for line in moved
        ]
        update = {"variants": {**before.variants, **added}, "claims": claims}
        update["moved"] = (*before.moved, *self._moved)
        self.document = document.model_copy(
            update={"remediation": before.model_copy(update=update)}
        )

    def measure(self, isolation: Isolation, settings: Settings) -> Verified:
        """Measure the work tree as the fix. Write the claims that hold for it to the file of the ticket.

        Nothing is written or recorded where found or the fix could not be measured.

        Raises:
            GateError: A claim about the code as found is false, or the fix changes nothing.
            BadDataError: The file cannot be edited so that it reads back.
        """
        settings = with_meter(isolation, settings)
        work = measure_one(self.document, isolation, settings)
        measured, claims = work.measured, work.plan.claims
        # Of a place, what is unchanged still waits: that refuses it.
        is_tried = work.plan.place or not is_unchanged(work)
        if (
            measured
            and is_tried
            and not any(trouble(name, measured, claims) for name in (FOUND, FIX))
        ):
            self._write_claims(work, measured)
        if self.change is None:
            settings = replace(settings, record=False)
        return conclude(work, isolation, settings)

    def _write_claims(self, work: MeasuredPlan, measured: MeasuredTicket) -> None:
        """Write the claims that hold for the fix to the file of the ticket, and plan with them."""
        before, todo = self._before, work.plan
        results = check(todo.claims, measured)
        for one in results:
            if one.variant == FOUND and one.is_surprise:
                message = f"{one.id} is claimed to be {one.claimed}, and was measured as {one.measured}"
                hint = "correct the claim about the code as found first"
                raise GateError(f"{self.id}: {message}", hint=hint)
        if before.run:
            _check_stated(self.id, results, measured)
        difference = result_difference(results)
        if reason := difference or find_race(todo.claims, measured):
            hint = "mend the fix; what may differ is named in the Remediation: differs: [NAME]"
            raise GateError(
                f"{self.id}: {reason}", hint=hint if difference else "mend the fix"
            )
        values = propose(before.claims, measured)
        tried = {each.id for each in todo.claims if each is _CLAIM}
        for one in results:
            if one.id in tried and one.holds:
                values[one.metric] = one.claimed
            elif one.id in tried:
                points = "; ".join(one.counterexamples[:1])
                say(
                    f"{self.id}: not claimed: {one.id}: {one.measured}{f' ({points})' if points else ''}"
                )
        metrics = [name for name in values if name != SAME_RESULT]
        costs = [
            [
                [each.metrics.get(name) for name in metrics]
                for each in measured.variants[variant].samples
            ]
            for variant in (FOUND, FIX)
        ]
        if metrics and costs[0] == costs[1]:
            what = ", ".join(f"{name} {values[name]}" for name in metrics)
            raise GateError(
                f"{self.id}: the work tree costs what the code as found does: {what}",
                hint="change the code, then try again; nothing was written",
            )
        entries: dict[str, Any] = {
            "variants": self._added,
            "claims": {FIX: values} if values else {},
        }
        entries["moved"] = [each.stated for each in self._moved]
        written = self._written({key: each for key, each in entries.items() if each})
        stated = plan(written, self._register.root.resolve())
        if stated:
            unstated = [claim for claim in todo.claims if claim.id == OUTCOME]
            work.plan = replace(stated, claims=(*stated.claims, *unstated))

    def _written(self, entries: dict[str, Any]) -> Document:
        """Write the entries to the file of the Remediation. Return the document as it is afterwards."""
        document, path = self._stated, self._before.path
        vocabulary = self._register.config.vocabulary
        is_own = path == document.path
        if is_own:
            edit = edit_of(
                entry_of(document), vocabulary, today(), add_to_remediation(entries)
            )
        else:
            edit = add_to_sidecar(path, entries)
        (self.change,) = rewrite(self._register.root, [edit], dry_run=self._dry_run)
        if is_own:
            written, _ = read_document(self.change.new, path, vocabulary)
            return written or document
        remediation, _ = read_sidecar(self.change.new, path)
        return document.model_copy(update={"remediation": remediation})


def _check_stated(
    ticket: str, results: Sequence[ClaimResult], measured: MeasuredTicket
) -> None:
    """Raise GateError if a claim is false: a statement still waits, or a different one waits instead."""
    false = [one for one in results if one.is_surprise and one.id != OUTCOME]
    if not false:
        return
    hint = "change the code, then try again; nothing was written"
    others = [each.place for each in measured.elsewhere if each.file]
    if any(each.what == "hazards" for each in measured.elsewhere):
        hint = "let the host or the stream wait for the copy, such as by an event; nothing was written"
    elif all(one.metric == ELSEWHERE for one in false) and others:
        words = " ".join(f"--moved {line}" for line in others)
        hint = (
            "nothing was written; if that is part of the fix, and waits less: "
            f"tickets fix {ticket} {words}"
        )
    said = [
        one.contradicted or f"{one.id}: claimed {one.claimed}, measured {one.measured}"
        for one in false
    ]
    raise GateError(f"{ticket}: {'; '.join(said)}", hint=hint)


def _statement(
    ticket: str, before: Remediation, place: str, root: Path
) -> StatementRef:
    """Return the statement of the work tree at a line.

    Raises:
        UsageError: There is none, or the ticket is about no place.
    """
    file, _, line = place.rpartition(":")
    found = find_statement(root, file, int(line) if line.isdecimal() else 0, "")
    if not before.place:
        raise UsageError(
            f"--moved {place}: {ticket} is about no place",
            hint="docs/tickets.md#a-place",
        )
    if not found.last_line:
        raise UsageError(
            f"--moved {place}: there is no such statement", hint="write FILE:LINE"
        )
    return StatementRef(
        file=found.file, function=found.function, code=found.code, line=1
    )


def _ref(raw: str) -> VariantRef:
    """A variant as it is read: a revision of what is run, or a function at one."""
    place, _, revision = raw.partition("@")
    module, _, function = place.rpartition(":")
    at = revision if revision != WORKTREE else ""
    return VariantRef(
        raw=raw, module=module, function=function, revision=at or None, line=1
    )


SHORT = 12
# Tried for every fix that a verifier compares.
_CLAIM = claim_same_result(f"{FIX}.{SAME_RESULT}")


def added_variants(ticket: str, before: Remediation, root: Path) -> dict[str, str]:
    """Return the variants that make the work tree the fix. A ``found`` at a branch or HEAD gets its commit.

    Raises:
        UsageError: Its code as found is the work tree itself, or has no revision.
    """
    found, usual = before.variants.get(FOUND), root / f"{fixes_folder(ticket)}/{FIX}.py"
    place = "" if before.run or not found else f"{found.module}:{found.function}"
    added = {}
    if found and found.revision:
        try:
            commit = Checkouts(root).revision(found.revision).commit
            names = named_commits(root, found.revision)
        except (RevisionError, GitError) as error:
            raise UsageError(f"{ticket}: {FOUND}: {error}") from None
        # HEAD and branches move along when the fix is committed.
        is_tag = any(name.startswith("refs/tags/") for name in names)
        if not is_tag and not commit.startswith(found.revision.lower()):
            added[FOUND] = f"{place}@{commit[:SHORT]}"
    elif before.run or not (FIX in before.variants or usual.is_file()):
        hint = f'pin it to the commit that has it: {FOUND}: "{place}@COMMIT"'
        raise UsageError(
            f"{ticket}: its code as found is that of the work tree", hint=hint
        )
    if found and found.revision and FIX not in before.variants:
        added[FIX] = place or f"@{WORKTREE}"
    return added
