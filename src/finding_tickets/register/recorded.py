"""Evidence as a file: a JSON array with a fact on each line, so that git merges it line by line.

The last two facts are a digest of all others and the number of the format. A file that has lines of two
branches does not match its digest. Samples are not kept: laws and claims say what counts.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any

from finding_tickets.claims.metrics import MEMORY, WAITING

if TYPE_CHECKING:
    from finding_tickets.model.verification import VariantResult, Verification

FORMAT = 2
OF_OLDER_VERSION = "it was recorded by an older version of this tool"
NOT_AS_RECORDED = "its evidence was merged or edited"

# Lines of a variant that are kept: those that wait or copy come first.
MOST_LINES = 10
_STATED = {"ticket", "verdict", "reason", "meter", "torch", "device"}
_OF_CLAIM = ("id", "variant", "metric", "claimed", "measured", "holds")
_OF_VARIANT = {"unknown", "approximate", "modelled"}

# What each fact says, by its kind.
Facts = defaultdict[str, list[list[Any]]]


class NotEvidenceError(ValueError):
    """Bytes are not evidence; the message is the reason in a few words."""


def write_facts(facts: Iterable[Sequence[Any]]) -> bytes:
    """Return facts, each a kind and what it says, as a file. The same facts give the same bytes."""
    lines = [_line(fact) for fact in facts]
    lines += [_line(["digest", _digest(lines)]), _line(["format", FORMAT])]
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode()


def read_facts(content: bytes) -> Facts:
    """Return the facts in a file.

    Raises:
        NotEvidenceError: An older version wrote it, or it is not as it was written.
    """
    try:
        *facts, digest, form = json.loads(content)
    except ValueError:
        raise NotEvidenceError(NOT_AS_RECORDED) from None
    except TypeError:
        raise NotEvidenceError(OF_OLDER_VERSION) from None
    if form != ["format", FORMAT]:
        raise NotEvidenceError(OF_OLDER_VERSION)
    if digest != ["digest", _digest(map(_line, facts))]:
        raise NotEvidenceError(NOT_AS_RECORDED)
    found = Facts(list)
    for kind, *says in facts:
        found[kind].append(says)
    return found


def _line(fact: Sequence[Any]) -> str:
    return json.dumps(fact, ensure_ascii=False)


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode(errors="surrogatepass")).hexdigest()


def verification_facts(done: Verification) -> Iterator[list[Any]]:
    """Yield the facts of a verification."""
    claimed = {claim.metric for claim in done.claims}
    yield ["verdict", done.model_dump(mode="json", include=_STATED)]
    for claim in done.claims:
        # The first point at which a claim fails is enough to look at.
        one = claim.model_copy(update={"counterexamples": claim.counterexamples[:1]})
        more = one.model_dump(mode="json", exclude={*_OF_CLAIM}, exclude_defaults=True)
        yield ["claim", *(getattr(one, name) for name in _OF_CLAIM), more]
    for name, variant in done.variants.items():
        yield [
            "variant",
            name,
            variant.model_dump(mode="json", include=_OF_VARIANT, exclude_defaults=True),
        ]
        for kind, laws in (("law", variant.laws), ("growth", variant.growth)):
            metrics: dict[str, list[str]] = {}
            for metric, law in laws.items():
                metrics.setdefault(law, []).append(metric)
            for law, equal in metrics.items():
                yield [kind, name, law, equal]
        for line in _lines(variant, claimed):
            yield ["line", name, *line]
    names = list(done.sweep[0]) if done.sweep else []
    yield ["sweep", names, [[at[name] for name in names] for at in done.sweep]]
    for point in done.not_measured:
        yield ["not measured", point.model_dump(mode="json")]


def _lines(variant: VariantResult, claimed: Set[str]) -> Iterator[list[Any]]:
    """Yield the lines that wait or copy, then others that claims are about: place, code, law and metrics."""
    wanted = WAITING | {metric.removesuffix("_bytes") for metric in claimed}
    if claimed & MEMORY:
        wanted |= {"allocations"}
    metrics: dict[tuple[Any, ...], list[str]] = {}
    for site in variant.sites:
        if site.what in wanted:
            place = (
                site.file,
                site.line,
                site.function,
                site.code,
                site.law,
                site.growth,
            )
            metrics.setdefault(place, []).append(site.what)
    first = sorted(metrics, key=lambda place: WAITING.isdisjoint(metrics[place]))[
        :MOST_LINES
    ]
    for place, equal in metrics.items():
        if place in first:
            yield [*place, equal]


def verification_in(facts: Facts) -> Verification:
    """Return the verification that facts are of."""
    # Lists load no records.
    from finding_tickets.model.verification import Verification

    variants: dict[str, dict[str, Any]] = {}
    for name, more in facts["variant"]:
        variants[name] = {**more, "laws": {}, "growth": {}, "sites": []}
    for name, law, metrics in facts["law"]:
        variants[name]["laws"] |= dict.fromkeys(metrics, law)
    for name, growth, metrics in facts["growth"]:
        variants[name]["growth"] |= dict.fromkeys(metrics, growth)
    for name, file, line, function, code, law, growth, metrics in facts["line"]:
        place = {"file": file, "line": line, "function": function, "code": code}
        for what in metrics:
            variants[name]["sites"].append(
                {**place, "what": what, "law": law, "growth": growth}
            )
    claims = [
        {**dict(zip(_OF_CLAIM, says, strict=True)), **more}
        for *says, more in facts["claim"]
    ]
    ((stated,),) = facts["verdict"]
    ((names, sweep),) = facts["sweep"]
    return Verification.model_validate(
        {
            **stated,
            "sweep": [dict(zip(names, at, strict=True)) for at in sweep],
            "variants": variants,
            "claims": claims,
            "not_measured": [point for (point,) in facts["not measured"]],
        }
    )
