"""Rules about the Remediation section: its claims and answers, its verifier and its variants."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from finding_tickets.claims.check import parse_ratio
from finding_tickets.claims.language import ExpressionError, parse_condition, suggest
from finding_tickets.claims.metrics import CLAIMABLE
from finding_tickets.documents.reading import Document
from finding_tickets.ground.files import fixes_folder, verifier_path
from finding_tickets.lint.rules.rule import Context, Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.remediation import SAME_RESULT, SECONDS, Claim, VariantRef
from finding_tickets.model.vocabulary import squeeze

# How the first lines of templates/found.py.j2 and templates/fix.py.j2 end.
_TO_REPLACE = (
    b'. Replace it by the code that the ticket speaks of."""',
    b'. Replace it by your own."""',
)
_LONGEST_LINE = 1000


@rule("claim-syntax", Level.ERROR, bad_data=True)
def claim_syntax(document: Document, context: Context) -> Iterator[Remark]:
    """Values and conditions that do not parse."""
    for claim in _claims(document):
        texts = list(claim.at.values())
        if claim.metric not in {SAME_RESULT, SECONDS}:
            texts.insert(0, claim.value)
        problems = []
        if claim.metric == SECONDS and document.remediation and context.understood(document):
            # A claim may speak of the block's variants, and of those in the usual folder that it names.
            folder = fixes_folder(document.id.value)
            words = re.findall(r"\w+", claim.value)
            usual = (word for word in words if context.code.exists(f"{folder}/{word}.py"))
            variants = dict.fromkeys([*document.remediation.variants, *usual])
            try:
                parse_ratio(claim.value, claim.variant, variants)
            except ExpressionError as error:
                problems.append(error)
        for text in texts:
            try:
                parse_condition(text)
            except ExpressionError as error:
                problems.append(error)
        for problem in problems:
            yield Remark(claim.line, f"claim {claim.id}: {problem.message}", problem.hint)


@rule("unknown-metric", Level.ERROR, bad_data=True)
def unknown_metric(document: Document, context: Context) -> Iterator[Remark]:
    """Claims about what nobody measures."""
    for claim in _claims(document):
        if claim.metric not in CLAIMABLE:
            yield Remark(claim.line, f"there is no metric {claim.metric}", suggest(claim.metric, CLAIMABLE))


@rule("unknown-variant", Level.ERROR)
def unknown_variant(document: Document, context: Context) -> Iterator[Remark]:
    """Claims about variants that are nowhere, and comparisons with such."""
    if document.remediation is None or not context.understood(document):
        return
    # Variants may be named in the block or lie in the folder that is called after the ticket.
    known = document.remediation.variants
    for claim in _claims(document):
        for name in (claim.variant, claim.value) if claim.metric == SAME_RESULT else (claim.variant,):
            usual = f"{fixes_folder(document.id.value)}/{name}.py"
            if name not in known and not context.code.exists(usual):
                close = get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"write {usual}"
                yield Remark(claim.line, f"claim {claim.id}: there is no variant {name}", hint)


@rule("unknown-claim", Level.ERROR)
def unknown_claim(document: Document, context: Context) -> Iterator[Remark]:
    """Answers that name a claim which is not there; a metric with several values may be named as a whole."""
    claims = _claims(document)
    known = sorted({name for claim in claims for name in (claim.id, f"{claim.variant}.{claim.metric}")})
    for answer in document.remediation.checklist if document.remediation else ():
        for name in answer.claims:
            if name not in known:
                yield Remark(answer.line, f"no claim is called {name}", suggest(name, known))


@rule("unanswered-item", Level.WARNING)
def unanswered_item(document: Document, context: Context) -> Iterator[Remark]:
    """Checklist items without an answer."""
    if document.remediation is None or not context.understood(document):
        return
    for item in document.checklist:
        if document.remediation.answer_to(item.text) is None:
            message = f"the checklist item has no answer: {item.text}"
            hint = "add it under checklist: in the Remediation section, with claims: or why:"
            yield Remark(item.span, message, hint)


@rule("unknown-item", Level.WARNING)
def unknown_item(document: Document, context: Context) -> Iterator[Remark]:
    """Answers to items that the checklist does not have."""
    items = {squeeze(item.text) for item in document.checklist}
    for answer in document.remediation.checklist if document.remediation else ():
        if squeeze(answer.item) not in items:
            yield Remark(answer.line, f"the checklist has no item: {answer.item}")


@rule("outside-repository", Level.ERROR, bad_data=True)
def outside_repository(document: Document, context: Context) -> Iterator[Remark]:
    """Paths that leave the repository, by ``..``, from the root of the disk or through a link."""
    if document.remediation is None:
        return
    verifier = document.remediation.verifier
    if verifier and not context.code.inside(verifier):
        yield Remark(document.remediation.span.line, f"verifier {verifier} leaves the repository")
    for name, variant in document.remediation.variants.items():
        if variant.module.endswith(".py") and not context.code.inside(variant.module):
            yield Remark(variant.line, f"variant {name} leaves the repository: {variant.raw}")


@rule("missing-verifier", Level.ERROR)
def missing_verifier(document: Document, context: Context) -> Iterator[Remark]:
    """Verifiers that are not there, named by the ticket or needed by its claims."""
    remediation = document.remediation
    if remediation is None or not (remediation.verifier or remediation.claims):
        return
    # What the reader did not understand may be the line that names the verifier.
    if remediation.verifier is None and not context.understood(document):
        return
    verifier = remediation.verifier or verifier_path(document.id.value)
    if context.code.inside(verifier) and not context.code.exists(verifier):
        hint = context.code.files_like(verifier) or "tickets new --with-verifier writes one"
        yield Remark(remediation.span.line, f"there is no verifier {verifier}", hint)


@rule("missing-variant", Level.ERROR)
def missing_variant(document: Document, context: Context) -> Iterator[Remark]:
    """Variants whose file or function is not there."""
    for name, variant in _variants_here(document, context):
        file = variant.module
        if not context.code.exists(file):
            message = f"variant {name}: there is no file {file}"
            yield Remark(variant.line, message, context.code.files_like(file))
            continue
        # The file is parsed and not imported: lint runs nobody's code.
        names = _functions(context.root / file)
        if variant.function not in names:
            close = get_close_matches(variant.function, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else None
            yield Remark(variant.line, f"variant {name}: {file} defines no {variant.function}", hint)


@rule("example-code", Level.WARNING)
def example_code(document: Document, context: Context) -> Iterator[Remark]:
    """Variants whose first line still says that they are to be replaced."""
    for name, variant in _variants_here(document, context):
        try:
            with (context.root / variant.module).open("rb") as file:
                first = file.readline(_LONGEST_LINE).rstrip()
        except OSError:
            continue
        if first.endswith(_TO_REPLACE):
            message = f"variant {name} is still the example code: {variant.module}"
            yield Remark(variant.line, message, "write the ticket's own code, and change the first line")


def _claims(document: Document) -> tuple[Claim, ...]:
    return document.remediation.claims if document.remediation else ()


def _variants_here(document: Document, context: Context) -> Iterator[tuple[str, VariantRef]]:
    """The variants that are files of the work tree."""
    for name, variant in document.remediation.variants.items() if document.remediation else ():
        is_here = variant.module.endswith(".py") and variant.revision is None
        if is_here and context.code.inside(variant.module):
            yield name, variant


def _functions(path: Path) -> set[str]:
    """Names that a file binds at its top level; empty where it is no Python."""
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return set()
    names: set[str] = set()
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.ImportFrom() | ast.Import():
                names.update(alias.asname or alias.name for alias in node.names)
            case ast.Assign():
                names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names
