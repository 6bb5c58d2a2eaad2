"""Rules about the claims of a Remediation section and the answers that rest on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import partial

from finding_tickets.claims.expressions import ExpressionError, suggest
from finding_tickets.claims.grammar import parse_condition
from finding_tickets.claims.metrics import CLAIMABLE
from finding_tickets.claims.ratios import parse_ratio
from finding_tickets.documents.reading import Document
from finding_tickets.lint.rules.context import Context
from finding_tickets.lint.rules.rule import TICKET, Files, Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.remediation import SAME_RESULT, SECONDS, Claim
from finding_tickets.model.vocabulary import squeeze
from finding_tickets.register.answers import answer_to
from finding_tickets.register.convention import fixes_folder

_BY_HAND = "  - {item: Count the waits, why: by hand}"


def _measured(*lines: str) -> Files:
    """An example: a ticket with a verifier, a variant, an answered checklist, and these lines of YAML."""
    block = "\n".join(
        [*lines, *([] if any(line.startswith("checklist:") for line in lines) else ["checklist:", _BY_HAND])]
    )
    return {
        TICKET: f"## Remediation\n\n```yaml\n{block}\n```",
        "fixes/b1_pt_01/found.py": "def step(): ...\n",
        "verifiers/b1_pt_01.py": "",
    }


def _claim(text: str) -> Files:
    return _measured("claims:", "  found:", f"    {text}")


def _answered(*answers: str) -> Files:
    return _measured("claims:", "  found: {syncs: 1}", "checklist:" if answers else "checklist: []", *answers)


@rule(
    "claim-syntax",
    Level.ERROR,
    "A claim is an expression, a comparison, a range or a growth class; one about `seconds` is a multiple of "
    "another variant's time. Unknown variables of the sweep show only when the ticket is verified.",
    wrong=_claim("syncs: 4*params +"),
    right=_claim("syncs: 4*params + 1"),
    bad_data=True,
)
def claim_syntax(document: Document, context: Context) -> Iterator[Remark]:
    """Values and conditions that do not parse."""
    for claim in _claims(document):
        for read in _readers(claim, document, context):
            try:
                read()
            except ExpressionError as error:
                yield Remark(claim.line, f"claim {claim.id}: {error.message}", error.hint)


def _readers(claim: Claim, document: Document, context: Context) -> Iterator[Callable[[], object]]:
    """What reads the value and the conditions of a claim."""
    if claim.metric == SECONDS:
        if context.understood(document):
            yield lambda: parse_ratio(claim.value, claim.variant, _variants_for(claim, document, context))
    elif claim.metric != SAME_RESULT:
        yield partial(parse_condition, claim.value)
    yield from (partial(parse_condition, text) for text in claim.at.values())


def _variants_for(claim: Claim, document: Document, context: Context) -> list[str]:
    """The variants that a claim may speak of: the block's, and those in the usual folder that it names."""
    stated = document.remediation.variants if document.remediation else {}
    words = re.findall(r"\w+", claim.value)
    folder = fixes_folder(document.id.value)
    return list(dict.fromkeys([*stated, *(word for word in words if context.exists(f"{folder}/{word}.py"))]))


@rule(
    "unknown-metric",
    Level.ERROR,
    "A claim is about a metric that the meters count (docs/metrics.md), or about the same result.",
    wrong=_claim("sinks: 1"),
    right=_claim("syncs: 1"),
    bad_data=True,
)
def unknown_metric(document: Document, context: Context) -> Iterator[Remark]:
    """Claims about what nobody measures."""
    for claim in _claims(document):
        if claim.metric not in CLAIMABLE:
            yield Remark(claim.line, f"there is no metric {claim.metric}", suggest(claim.metric, CLAIMABLE))


@rule(
    "unknown-variant",
    Level.ERROR,
    "A claim is about a variant that stands under variants: or in the folder fixes/<id>/.",
    wrong=_measured("claims:", "  fix: {syncs: 1}"),
    right=_measured("variants:", "  fix: src/step.py:step", "claims:", "  fix: {syncs: 1}"),
)
def unknown_variant(document: Document, context: Context) -> Iterator[Remark]:
    """Claims about variants that are nowhere, and comparisons with such."""
    if document.remediation is None or not context.understood(document):
        return
    known = document.remediation.variants
    for claim in _claims(document):
        for name in (claim.variant, claim.value) if claim.metric == SAME_RESULT else (claim.variant,):
            usual = f"{fixes_folder(document.id.value)}/{name}.py"
            if name not in known and not context.exists(usual):
                close = get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"write {usual}"
                yield Remark(claim.line, f"claim {claim.id}: there is no variant {name}", hint)


@rule(
    "unknown-claim",
    Level.ERROR,
    "An answer to an item of the checklist names claims that the ticket makes.",
    wrong=_answered("  - {item: Count the waits, claims: [found.sinks]}"),
    right=_answered("  - {item: Count the waits, claims: [found.syncs]}"),
)
def unknown_claim(document: Document, context: Context) -> Iterator[Remark]:
    """Answers that name a claim which is not there; a metric with several values may be named as a whole."""
    if document.remediation is None:
        return
    known = sorted(
        {name for claim in _claims(document) for name in (claim.id, f"{claim.variant}.{claim.metric}")}
    )
    for answer in document.remediation.checklist:
        for name in answer.claims:
            if name not in known:
                yield Remark(answer.line, f"no claim is called {name}", suggest(name, known))


@rule(
    "unanswered-item",
    Level.WARNING,
    "Where a ticket is measured, each item of its checklist names the claims that answer it or why none can.",
    wrong=_answered(),
    right=_answered("  - {item: Count the waits, why: there is no GPU to count them on}"),
)
def unanswered_item(document: Document, context: Context) -> Iterator[Remark]:
    """Checklist items without an answer."""
    if document.remediation is None or not context.understood(document):
        return
    for item in document.checklist:
        if answer_to(item.text, document.remediation) is None:
            yield Remark(
                item.span,
                f"no answer to the checklist's item: {item.text}",
                "add it under checklist: in the Remediation section, with claims: or why:",
            )


@rule(
    "unknown-item",
    Level.WARNING,
    "An answer quotes an item of the ticket's checklist, so that both are read together.",
    wrong=_answered(_BY_HAND, "  - {item: Something nobody asked for, why: by hand}"),
    right=_answered(_BY_HAND),
)
def unknown_item(document: Document, context: Context) -> Iterator[Remark]:
    """Answers to items that the checklist does not have."""
    if document.remediation is None:
        return
    items = {squeeze(item.text) for item in document.checklist}
    for answer in document.remediation.checklist:
        if squeeze(answer.item) not in items:
            yield Remark(answer.line, f"the checklist has no item: {answer.item}")


def _claims(document: Document) -> tuple[Claim, ...]:
    return document.remediation.claims if document.remediation else ()
