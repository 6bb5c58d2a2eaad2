"""Rules about the Remediation section: its claims and answers, its verifier and its variants."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from finding_tickets.claims.language import ExpressionError, parse_condition, suggest
from finding_tickets.claims.metrics import CLAIMABLE, REMOVED_METRICS
from finding_tickets.documents.reading import Document
from finding_tickets.ground.files import fixes_folder, verifier_path
from finding_tickets.lint.rules.rule import Context, Remark, Rule, check
from finding_tickets.measure.tasks import parse_code
from finding_tickets.model.ticket import Claim, VariantRef
from finding_tickets.model.vocabulary import SAME_RESULT, Level, squeeze


@check(
    Rule("claim-syntax", Level.ERROR, bad_data=True),
    Rule("unknown-metric", Level.ERROR, bad_data=True),
    Rule("unknown-variant", Level.ERROR),
)
def claims(document: Document, context: Context) -> Iterator[Remark]:
    """Claims that do not parse, or are about a metric or a variant that there is not."""
    block = document.remediation
    if block is None:
        return
    understood = context.understood(document)
    folder = fixes_folder(document.id.value)
    for claim in block.claims:
        for error in _errors(claim):
            message = f"claim {claim.id}: {error.message}"
            yield Remark("claim-syntax", claim.line, message, error.hint)
        if claim.metric not in CLAIMABLE:
            message = f"there is no metric {claim.metric}"
            hint = REMOVED_METRICS.get(claim.metric) or suggest(claim.metric, CLAIMABLE)
            yield Remark("unknown-metric", claim.line, message, hint)
        names = (claim.variant, claim.value) if claim.metric == SAME_RESULT else (claim.variant,)
        # What is missing may stand in what the reader did not understand.
        for name in names if understood else ():
            # Variants may be named in the block or lie in the folder that is called after the ticket.
            usual = f"{folder}/{name}.py"
            if name not in block.variants and not context.code.exists(usual):
                close = get_close_matches(name, block.variants, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"write {usual}"
                message = f"claim {claim.id}: there is no variant {name}"
                yield Remark("unknown-variant", claim.line, message, hint)


def _errors(claim: Claim) -> Iterator[ExpressionError]:
    """Yield what does not parse of a claim's value and of its conditions."""
    texts = [] if claim.metric == SAME_RESULT else [claim.value]
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
    """Items of the checklist without an answer, and answers to no item or by no claim."""
    block = document.remediation
    if block is None:
        return
    known = sorted(block.claim_names)
    # What the fix will be claimed to cost may be named before there is a fix.
    if "fix" not in block.variants and not any(claim.variant == "fix" for claim in block.claims):
        known += [f"fix.{metric}" for metric in {SAME_RESULT, *(claim.metric for claim in block.claims)}]
    items = {squeeze(item.text) for item in document.checklist}
    for answer in block.checklist:
        for name in answer.claims:
            if name not in known:
                message = f"no claim is called {name}"
                yield Remark("unknown-claim", answer.line, message, suggest(name, known))
        if squeeze(answer.item) not in items:
            yield Remark("unknown-item", answer.line, f"the checklist has no item: {answer.item}")
    for item in document.checklist if context.understood(document) else ():
        if block.answer_to(item.text) is None:
            message = f"the checklist item has no answer: {item.text}"
            hint = "add it under checklist: in the Remediation section, with claims: or why:"
            yield Remark("unanswered-item", item.span, message, hint)


@check(
    Rule("outside-repository", Level.ERROR, bad_data=True),
    Rule("missing-verifier", Level.ERROR),
    Rule("missing-variant", Level.ERROR),
)
def code(document: Document, context: Context) -> Iterator[Remark]:
    """A verifier and variants outside of the repository, or not there."""
    block = document.remediation
    if block is None:
        return
    # Claims need a verifier, whose name may stand in what the reader did not understand.
    needs_usual = block.claims and context.understood(document)
    verifier = block.verifier or (verifier_path(document.id.value) if needs_usual and not block.run else "")
    if block.verifier and not context.code.inside(block.verifier):
        message = f"verifier {block.verifier} leaves the repository"
        yield Remark("outside-repository", block.span.line, message)
    elif verifier and context.code.inside(verifier) and not context.code.exists(verifier):
        hint = context.code.files_like(verifier) or "tickets new --with-verifier writes one"
        yield Remark("missing-verifier", block.span.line, f"there is no verifier {verifier}", hint)
    run = block.run.target.partition(":")[0] if block.run else ""
    for name, variant in block.variants.items():
        if block.run and run.endswith(".py") and not variant.revision and not context.code.exists(run):
            message, guess = f"variant {name}: there is no file {run}", context.code.files_like(run)
            yield Remark("missing-variant", block.run.line, message, guess)
        if variant.module.endswith(".py"):
            if not context.code.inside(variant.module):
                message = f"variant {name} leaves the repository: {variant.raw}"
                yield Remark("outside-repository", variant.line, message)
            elif variant.revision is None:
                yield from _variant(name, variant, context)


def _variant(name: str, variant: VariantRef, context: Context) -> Iterator[Remark]:
    """What is wrong with a variant that is a file of the work tree."""
    file = variant.module
    if not context.code.exists(file):
        hint = context.code.files_like(file)
        yield Remark("missing-variant", variant.line, f"variant {name}: there is no file {file}", hint)
        return
    # The file is parsed and not imported: lint runs nobody's code.
    names = _functions(context.root / file)
    # A method is found in its class, which may inherit it.
    if variant.function.partition(".")[0] not in names:
        close = get_close_matches(variant.function, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else None
        message = f"variant {name}: {file} defines no {variant.function}"
        yield Remark("missing-variant", variant.line, message, hint)


def _functions(path: Path) -> set[str]:
    """Names that a file binds at its top level; empty where it is no Python."""
    tree, names = parse_code(path), set[str]()
    for node in tree.body if tree else ():
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.ImportFrom() | ast.Import():
                names.update(alias.asname or alias.name for alias in node.names)
            case ast.Assign():
                names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names
