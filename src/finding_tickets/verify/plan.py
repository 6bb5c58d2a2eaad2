"""What there is to measure for a document: its verifier, its variants and its claims; none of it is run."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from finding_tickets.claims.expressions import ExpressionError, Growth, suggest
from finding_tickets.claims.grammar import parse_condition
from finding_tickets.claims.metrics import CLAIMABLE
from finding_tickets.claims.ratios import parse_ratio
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.ground.checkouts import Checkouts, Revision, RevisionError
from finding_tickets.measure.source import Comparison, Source
from finding_tickets.model.remediation import SAME_RESULT, SECONDS, Claim, Remediation, VariantRef
from finding_tickets.register.convention import fixes_folder, verifier_path
from finding_tickets.verify.variants import find_variants

EVERY = "*"
"""Stands for all variants that name no revision themselves."""


@dataclass(frozen=True)
class Plan:
    """Everything a verification needs to know of a document; ``files`` are relative to ``root``.

    ``verifiers`` is the root that ``verifier`` is relative to, ``repository`` the folder in which git knows
    the ``revisions`` of variants that are not those at ``root``. ``trouble`` says why nothing can be measured
    although nothing is wrong with the document.
    """

    ticket: str
    document: str
    root: Path
    verifiers: Path
    repository: Path
    verifier: str
    variants: dict[str, Source]
    revisions: dict[str, Revision] = field(default_factory=dict)
    keep: bool = False
    claims: tuple[Claim, ...] = ()
    trouble: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the work tree that are known to be run before running anything."""
        here = (source.module for name, source in self.variants.items() if name not in self.revisions)
        return tuple(dict.fromkeys([self.verifier, *(file for file in here if file.endswith(".py"))]))

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """What the claims about results compare."""
        claims = (claim for claim in self.claims if claim.metric == SAME_RESULT)
        return tuple(dict.fromkeys(map(comparison_of, claims)))

    @property
    def is_timed(self) -> bool:
        """Whether a claim is about time."""
        return any(claim.metric == SECONDS for claim in self.claims)

    @property
    def compared_across(self) -> tuple[Comparison, ...]:
        """The comparisons of variants at different revisions, which are measured apart."""
        at = {name: self.revisions.get(name) for name in self.variants}
        return tuple(each for each in self.comparisons if at[each.variant] != at[each.target])


def comparison_of(claim: Claim) -> Comparison:
    """What a claim about ``same_result_as`` compares."""
    return Comparison(claim.variant, claim.value, claim.tolerance)


def plan(
    document: Document,
    root: Path,
    overrides: Mapping[str, str] | None = None,
    verifiers: Path | None = None,
    commits: Mapping[str, str] | None = None,
    repository: Path | None = None,
) -> Plan | None:
    """How to verify a document of the register at ``root``; None where it has no verifier.

    ``overrides`` are revisions for variants by name, ``*`` for those that name none themselves. The verifier
    is taken from the folder ``verifiers``, by default the root. ``commits`` has the revisions by name that
    git does not know here; it is asked in the folder ``repository``, by default the root.

    Raises:
        BadDataError: A file is missing or outside the root, or a claim cannot be understood.
    """
    place = verifiers or root
    verifier = verifier_of(document, place)
    if verifier is None:
        return None
    remediation = document.remediation
    try:
        _check_file(verifier, place)
        checkouts = Checkouts(repository or root, commits or {})
        found = _plan(document, root, checkouts, verifier, remediation, overrides or {})
        return replace(found, verifiers=place)
    except BadDataError as error:
        line = error.line or (remediation.span.line if remediation else None)
        file = error.file or (remediation.path if remediation else document.path)
        raise BadDataError(error.message, file=file, line=line, hint=error.hint) from None


def verifier_of(document: Document, root: Path) -> str | None:
    """The verifier that a document names, or the usual one where that exists, or none."""
    if document.remediation and document.remediation.verifier:
        return document.remediation.verifier
    usual = verifier_path(document.id.value)
    return usual if (root / usual).is_file() else None


def places_of(document: Document, root: Path) -> dict[str, str]:
    """Where each variant lives, as ``module:function`` with ``@REV`` where one is stated.

    Raises:
        BadDataError: The files of the usual folder are not what they must be.
    """
    remediation = document.remediation
    refs = remediation.variants if remediation else {}
    sources = _variants(document.id.value, root, refs, remediation.claims if remediation else ())
    revisions = {name: ref.revision for name, ref in refs.items() if ref.revision}
    return {
        name: f"{source.module}:{source.function}" + (f"@{revisions[name]}" if name in revisions else "")
        for name, source in sources.items()
    }


def _plan(
    document: Document,
    root: Path,
    checkouts: Checkouts,
    verifier: str,
    remediation: Remediation | None,
    overrides: Mapping[str, str],
) -> Plan:
    refs = remediation.variants if remediation else {}
    claims = remediation.claims if remediation else ()
    variants = _variants(document.id.value, root, refs, claims)
    named = {name: _revision_of(name, refs, overrides) for name in variants}
    revisions, trouble = _resolved(checkouts, {name: text for name, text in named.items() if text}, variants)
    here = [source.module for name, source in variants.items() if not named[name]]
    for file in (module for module in here if module.endswith(".py")):
        _check_file(file, root)
    for claim in claims:
        _check_claim(claim, variants)
    return Plan(
        ticket=document.id.value,
        document=document.path,
        root=root,
        verifiers=root,
        repository=checkouts.root,
        verifier=verifier,
        variants=variants,
        revisions=revisions,
        keep=remediation is not None and remediation.decision == "keep",
        claims=claims,
        trouble=trouble if variants else "there is no variant to measure",
    )


def _revision_of(name: str, refs: Mapping[str, VariantRef], overrides: Mapping[str, str]) -> str | None:
    """The revision at which a variant is measured; None for the work tree."""
    if name in overrides:
        return overrides[name]
    stated = refs[name].revision if name in refs else None
    return stated or overrides.get(EVERY)


def _resolved(
    checkouts: Checkouts, named: Mapping[str, str], variants: Mapping[str, Source]
) -> tuple[dict[str, Revision], str | None]:
    """The revisions of variants, and why they cannot be measured there."""
    found: dict[str, Revision] = {}
    for name, text in named.items():
        try:
            found[name] = checkouts.revision(text)
        except RevisionError as error:
            return found, f"{name}: {error}"
        file = variants[name].module
        if file.endswith(".py") and not checkouts.has(found[name], file):
            return found, f"{name}: {_missing(checkouts, found[name], file)}"
    return found, None


def _missing(checkouts: Checkouts, revision: Revision, file: str) -> str:
    inside = [folder for folder in checkouts.submodules(revision) if file.startswith(f"{folder}/")]
    why = f"; {inside[0]} is a submodule, whose files are not part of the revision" if inside else ""
    return f"there is no file {file} at {revision}{why}"


def _variants(
    ticket: str, root: Path, refs: dict[str, VariantRef], claims: Iterable[Claim]
) -> dict[str, Source]:
    """The block's variants and those in the usual folder that claims name; without a block, all there."""
    folder = fixes_folder(ticket)
    if not refs:
        return find_variants(folder, root)
    found = {name: Source(ref.module, ref.function) for name, ref in refs.items()}
    function = next(iter(refs.values())).function
    for name in dict.fromkeys(name for claim in claims for name in named_in(claim)):
        usual = f"{folder}/{name}.py"
        if name not in found and (root / usual).is_file():
            found[name] = Source(usual, function)
    return found


def named_in(claim: Claim) -> tuple[str, ...]:
    """What may be the names of variants in a claim: its own, and what it compares with."""
    if claim.metric in {SAME_RESULT, SECONDS}:
        return (claim.variant, *re.findall(r"\w+", claim.value))
    return (claim.variant,)


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
        if claim.metric == SECONDS:
            parse_ratio(claim.value, claim.variant, variants)
        elif claim.metric != SAME_RESULT:
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
