"""Rules about the Remediation section: its claims and answers, its verifier and its variants."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from symtable import symtable

from finding_tickets.claims.language import ExpressionError, parse_condition, suggest
from finding_tickets.claims.metrics import CLAIMABLE, OF_STATEMENTS, REMOVED_METRICS
from finding_tickets.documents.reading import Document
from finding_tickets.ground.files import fixes_folder, verifier_path
from finding_tickets.lint.rules.rule import Context, Remark, Rule, check
from finding_tickets.model.ticket import Claim, Ticket, VariantRef
from finding_tickets.model.vocabulary import (
    ELSEWHERE,
    SAME_RESULT,
    UNSETTLED,
    Level,
    squeeze,
)
from finding_tickets.register.disposition import status_of


@check(
    Rule("claim-syntax", Level.ERROR, bad_data=True),
    Rule("unknown-metric", Level.ERROR, bad_data=True),
    Rule("unknown-variant", Level.ERROR),
)
def claims(document: Document, context: Context) -> Iterator[Remark]:
    """Find claims that do not parse, or are about a metric or a variant that there is not."""
    block = document.remediation
    if block is None:
        return
    # What is missing may stand in what the reader did not understand.
    is_understood = context.understood(document)
    folder = fixes_folder(document.id.value)
    for claim in block.claims:
        for error in _errors(claim):
            message = f"claim {claim.id}: {error.message}"
            yield Remark("claim-syntax", claim.line, message, error.hint)
        if claim.id == ELSEWHERE or (
            block.run and claim.variant == "fix" and "fix" not in block.variants
        ):
            # Of what is run, what the fix is to cost is claimed before there is one.
            continue
        if claim.metric not in CLAIMABLE:
            hint = REMOVED_METRICS.get(claim.metric) or suggest(claim.metric, CLAIMABLE)
            yield Remark(
                "unknown-metric", claim.line, f"there is no metric {claim.metric}", hint
            )
        for name in (
            (claim.variant, claim.value)
            if claim.metric == SAME_RESULT
            else (claim.variant,)
        ):
            # Variants may be named in the block or lie in the folder that is called after the ticket.
            usual = f"{folder}/{name}.py"
            if (
                is_understood
                and name not in block.variants
                and not context.code.exists(usual)
            ):
                close = get_close_matches(name, block.variants, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"write {usual}"
                message = f"claim {claim.id}: there is no variant {name}"
                yield Remark("unknown-variant", claim.line, message, hint)


def _errors(claim: Claim) -> Iterator[ExpressionError]:
    """Yield what does not parse of a claim's value and of its conditions."""
    texts = [] if claim.metric in {SAME_RESULT, ELSEWHERE} else [claim.value]
    for text in [*texts, *claim.at.values()]:
        try:
            parse_condition(text)
        except ExpressionError as error:
            yield error


@check(
    Rule("unknown-claim", Level.ERROR),
    Rule("unanswered-item", Level.WARNING),
    Rule("unknown-item", Level.WARNING),
)
def answers(document: Document, context: Context) -> Iterator[Remark]:
    """Find items of the checklist without an answer, and answers to no item or by no claim."""
    block = document.remediation
    if block is None:
        return
    known = sorted(block.claim_names)
    # What the fix will be claimed to cost may be named before there is a fix.
    if not {*block.variants, *(claim.variant for claim in block.claims)} & {"fix"}:
        known += [
            f"fix.{metric}"
            for metric in {SAME_RESULT, *(claim.metric for claim in block.claims)}
        ]
    items = {squeeze(item.text) for item in document.checklist}
    for answer in block.checklist:
        for name in answer.claims:
            if name not in known:
                message = f"no claim is called {name}"
                yield Remark(
                    "unknown-claim", answer.line, message, suggest(name, known)
                )
        if squeeze(answer.item) not in items:
            yield Remark(
                "unknown-item", answer.line, f"the checklist has no item: {answer.item}"
            )
    if context.understood(document):
        hint = (
            "add it under checklist: in the Remediation section, with claims: or why:"
        )
        for item in document.checklist:
            if block.answer_to(item.text) is None:
                message = f"the checklist item has no answer: {item.text}"
                yield Remark("unanswered-item", item.span, message, hint)


@check(Rule("whole-run", Level.NOTE), Rule("same-place", Level.WARNING), of=Ticket)
def places(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Claims about the whole of what runs, and a statement that an earlier open ticket is about."""
    block = ticket.remediation
    if (
        block
        and block.run
        and not block.place
        and any(each.metric in OF_STATEMENTS for each in block.claims)
    ):
        message = "the claims are about the whole run, not about a statement"
        hint = "add place, and claim what that statement costs: docs/tickets.md"
        yield Remark("whole-run", block.run.line, message, hint)
    if block and block.place and status_of(ticket) in UNSETTLED:
        first = context.places[block.place.key].id
        if first != ticket.id.value:
            hint = f"tickets close {ticket.id.value} --as duplicate --of {first}"
            yield Remark(
                "same-place",
                block.place.line,
                f"{first} is about this statement, too",
                hint,
            )


@check(
    Rule("outside-repository", Level.ERROR, bad_data=True),
    Rule("missing-verifier", Level.ERROR),
    Rule("missing-variant", Level.ERROR),
)
def code(document: Document, context: Context) -> Iterator[Remark]:
    """Find a verifier and variants outside of the repository, or not there."""
    block = document.remediation
    if block is None:
        return
    verifier, line = block.verifier or "", block.span.line
    # Claims need a verifier, whose name may stand in what the reader did not understand.
    if block.claims and not verifier and not block.run and context.understood(document):
        verifier = verifier_path(document.id.value)
    if not context.code.inside(verifier):
        yield Remark(
            "outside-repository", line, f"verifier {verifier} leaves the repository"
        )
    elif not context.code.exists(verifier):
        hint = (
            context.code.files_like(verifier)
            or "tickets new --with-verifier writes one"
        )
        yield Remark("missing-verifier", line, f"there is no verifier {verifier}", hint)
    run = block.run.target.partition(":")[0] if block.run else ""
    for name, variant in block.variants.items():
        file = variant.module or run
        if not file.endswith(".py"):
            continue
        if not context.code.inside(file):
            message = f"variant {name} leaves the repository: {variant.raw}"
            yield Remark("outside-repository", variant.line, message)
        elif not variant.revision:
            yield from _variant(name, file, variant, context)


def _variant(
    name: str, file: str, variant: VariantRef, context: Context
) -> Iterator[Remark]:
    """Find what is wrong with a variant in a file of the work tree."""
    if not context.code.exists(file):
        hint = context.code.files_like(file)
        yield Remark(
            "missing-variant",
            variant.line,
            f"variant {name}: there is no file {file}",
            hint,
        )
        return
    # A method is found in its class, which may inherit it.
    names = _names_in(context.root / file)
    if variant.function and variant.function.partition(".")[0] not in names:
        message = f"variant {name}: {file} defines no {variant.function}"
        yield Remark(
            "missing-variant", variant.line, message, suggest(variant.function, names)
        )


def _names_in(path: Path) -> list[str]:
    """Return the names that a file binds at its top level, without importing it."""
    try:
        table = symtable(path.read_text(encoding="utf-8"), path.name, "exec")
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    return [
        each.get_name()
        for each in table.get_symbols()
        if each.is_assigned() or each.is_imported()
    ]
