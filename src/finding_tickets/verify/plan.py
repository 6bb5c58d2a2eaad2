"""What there is to measure for a document: its verifier, its variants and its claims; none of it is run."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from finding_tickets.errors import BadDataError
from finding_tickets.markdown.reading import Document
from finding_tickets.meter.report import Comparison, Job, Source
from finding_tickets.model.remediation import SAME_RESULT, Claim, Remediation, VariantRef
from finding_tickets.register.convention import fixes_folder, verifier_path
from finding_tickets.verify.expressions import ExpressionError, Growth, suggest
from finding_tickets.verify.grammar import parse_condition
from finding_tickets.verify.metrics import CLAIMABLE
from finding_tickets.verify.variants import find_variants


@dataclass(frozen=True)
class Plan:
    """Everything a verification needs to know of a document; ``files`` are relative to ``root``.

    ``trouble`` says why nothing can be measured although nothing is wrong with the document.
    """

    ticket: str
    document: str
    root: Path
    verifier: str
    variants: dict[str, Source]
    keep: bool = False
    claims: tuple[Claim, ...] = ()
    trouble: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are known to be run before running anything."""
        modules = (source.module for source in self.variants.values() if source.module.endswith(".py"))
        return tuple(dict.fromkeys([self.verifier, *modules]))

    def job(self, meter: str) -> Job:
        """The order to measure this plan."""
        traced = dict.fromkeys(claim.variant for claim in self.claims if claim.metric == "graph_breaks")
        compared = [comparison_of(claim) for claim in self.claims if claim.metric == SAME_RESULT]
        return Job(
            root=str(self.root),
            verifier=self.verifier,
            variants=self.variants,
            meter=meter,
            graph_breaks=tuple(traced),
            comparisons=tuple(dict.fromkeys(compared)),
        )


def comparison_of(claim: Claim) -> Comparison:
    """What a claim about ``same_result_as`` compares."""
    return Comparison(claim.variant, claim.value, claim.tolerance)


def plan(document: Document, root: Path) -> Plan | None:
    """How to verify a document of the register at ``root``; None where it has no verifier.

    Raises:
        BadDataError: A file is missing or outside the root, or a claim cannot be understood.
    """
    verifier = verifier_of(document, root)
    if verifier is None:
        return None
    remediation = document.remediation
    try:
        return _plan(document.id.value, document.path, root, verifier, remediation)
    except BadDataError as error:
        line = error.line or (remediation.span.line if remediation else None)
        raise BadDataError(
            error.message, file=error.file or document.path, line=line, hint=error.hint
        ) from None


def verifier_of(document: Document, root: Path) -> str | None:
    """The verifier that a document names, or the usual one where that exists, or none."""
    if document.remediation and document.remediation.verifier:
        return document.remediation.verifier
    usual = verifier_path(document.id.value)
    return usual if (root / usual).is_file() else None


def _plan(ticket: str, document: str, root: Path, verifier: str, remediation: Remediation | None) -> Plan:
    refs = remediation.variants if remediation else {}
    claims = remediation.claims if remediation else ()
    variants = _variants(ticket, root, refs, claims)
    for file in [verifier, *(source.module for source in variants.values() if source.module.endswith(".py"))]:
        _check_file(file, root)
    for claim in claims:
        _check_claim(claim, variants)
    return Plan(
        ticket=ticket,
        document=document,
        root=root,
        verifier=verifier,
        variants=variants,
        keep=remediation is not None and remediation.decision == "keep",
        claims=claims,
        trouble=_trouble(variants, refs),
    )


def _variants(
    ticket: str, root: Path, refs: dict[str, VariantRef], claims: Iterable[Claim]
) -> dict[str, Source]:
    """The block's variants and those of the usual folder that its claims name; without a block, all there."""
    folder = fixes_folder(ticket)
    if not refs:
        return find_variants(folder, root)
    found = {name: Source(ref.module, ref.function) for name, ref in refs.items()}
    function = next(iter(refs.values())).function
    for claim in claims:
        usual = f"{folder}/{claim.variant}.py"
        if claim.variant not in found and (root / usual).is_file():
            found[claim.variant] = Source(usual, function)
    return found


def _trouble(variants: dict[str, Source], refs: dict[str, VariantRef]) -> str | None:
    if not variants:
        return "there is no variant to measure"
    revisions = [ref.raw for ref in refs.values() if ref.revision]
    return f"variants at a git revision cannot be run yet: {', '.join(revisions)}" if revisions else None


def _check_file(file: str, root: Path) -> None:
    path = (root / file).resolve()
    if not path.is_relative_to(root.resolve()):
        raise BadDataError(f"{file} leaves the repository")
    if not path.is_file():
        raise BadDataError(f"there is no file {file}", hint=_nearby(path, root))


def _nearby(path: Path, root: Path) -> str | None:
    names = [file.name for file in path.parent.glob("*.py")]
    close = difflib.get_close_matches(path.name, names, n=1)
    return (
        f"did you mean {(path.parent / close[0]).relative_to(root.resolve()).as_posix()}?" if close else None
    )


def _check_claim(claim: Claim, variants: dict[str, Source]) -> None:
    for kind, word, known in _words(claim, list(variants)):
        if word not in known:
            raise BadDataError(
                f"claim {claim.id}: unknown {kind} '{word}'", line=claim.line, hint=suggest(word, known)
            )
    try:
        if claim.metric != SAME_RESULT:
            parse_condition(claim.value)
        conditions = {name: parse_condition(text) for name, text in claim.at.items()}
    except ExpressionError as error:
        raise BadDataError(f"claim {claim.id}: {error.message}", line=claim.line, hint=error.hint) from None
    for name, condition in conditions.items():
        if isinstance(condition, Growth):
            raise BadDataError(f"claim {claim.id}: {name}: a growth class selects no points", line=claim.line)


def _words(claim: Claim, variants: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    yield "variant", claim.variant, variants
    yield "metric", claim.metric, list(CLAIMABLE)
    if claim.metric == SAME_RESULT:
        yield "variant", claim.value, variants
