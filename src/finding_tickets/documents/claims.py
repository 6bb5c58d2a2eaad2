"""The claims of a Remediation block: for each variant and metric one value or several, or a mapping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from finding_tickets.documents.yaml_nodes import YamlNode
from finding_tickets.model.remediation import SAME_RESULT, Claim

_KEYS = ("is", "at", "expect", "why")

Expectation = Literal["holds", "refuted"]


def read_claims(node: YamlNode) -> Iterator[Claim]:
    """Every claim, in the order of the block; what is wrong is reported and left out."""
    for variant, metrics in node.mapping("claims").items():
        for metric, value in metrics.mapping(f"claims about {variant}").items():
            yield from _of_metric(variant, metric, value)


def _of_metric(variant: str, metric: str, node: YamlNode) -> Iterator[Claim]:
    name = f"{variant}.{metric}"
    if node.kind != "sequence":
        yield from _claim(name, variant, metric, node)
        return
    values = list(node.sequence(name))
    if not values:
        node.wrong("remediation-type", f"{name} claims nothing")
    for index, value in enumerate(values):
        yield from _claim(f"{name}[{index}]", variant, metric, value)


def _claim(name: str, variant: str, metric: str, node: YamlNode) -> Iterator[Claim]:
    """One claim, or none where it cannot be understood."""
    allowed = (*_KEYS, "tolerance") if metric == SAME_RESULT else _KEYS
    keys = node.mapping(name, allowed) if node.kind == "mapping" else {"is": node}
    if "is" not in keys:
        node.wrong("remediation-missing", f"{name} needs 'is', the value that is claimed")
        return
    value, expect = keys["is"].text(name), _expect(keys.get("expect"))
    why = keys["why"].text("why") if "why" in keys else None
    if expect == "refuted" and why is None:
        node.wrong("remediation-why", f"{name} is expected to be refuted and needs 'why'")
    if value is not None and expect is not None:
        yield Claim(
            id=name,
            variant=variant,
            metric=metric,
            value=value,
            at=_conditions(keys.get("at")),
            expect=expect,
            why=why,
            tolerance=_tolerance(keys.get("tolerance")),
            line=node.line,
        )


def _expect(node: YamlNode | None) -> Expectation | None:
    text = node.text("expect") if node else "holds"
    if text == "holds":
        return "holds"
    if text == "refuted":
        return "refuted"
    if node and text is not None:
        node.wrong("remediation-type", f"expect is {text!r}", "one of holds, refuted")
    return None


def _conditions(node: YamlNode | None) -> dict[str, str]:
    """``at``: for each variable the condition that selects points of the sweep."""
    found = node.mapping("at") if node else {}
    read = {variable: condition.text(f"the condition on {variable}") for variable, condition in found.items()}
    return {variable: text for variable, text in read.items() if text is not None}


def _tolerance(node: YamlNode | None) -> float | None:
    text = node.text("tolerance") if node else None
    if node is None or text is None:
        return None
    try:
        tolerance = float(text)
    except ValueError:
        tolerance = -1.0
    if not 0 <= tolerance < float("inf"):
        node.wrong("remediation-type", f"the tolerance {text!r} is not a number of at least 0")
        return None
    return tolerance
