"""What a run says of the rules of its tools."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import NamedTuple

from finding_tickets.importers.sarif import (
    Component,
    ComponentReference,
    Properties,
    Result,
    Rule,
    Run,
)
from finding_tickets.model.vocabulary import Severity

LEVELS = {"error": Severity.P1, "warning": Severity.P2, "note": Severity.P3, "none": Severity.P4}
"""The severity of a result, by its level."""
SCORES = ((9.0, Severity.P0), (7.0, Severity.P1), (4.0, Severity.P2))
"""The severity of a result, by the least score it needs: critical, high and medium as GitHub has them."""


class Named(NamedTuple):
    """The rule that a result speaks of: its ID, as far as it is known, and what the tool says of it."""

    id: str
    rule: Rule


class Rules:
    """The rules of one run, by ID and by index."""

    def __init__(self, run: Run) -> None:
        self._driver = run.driver
        self._extensions = (run.tool.extensions if run.tool else None) or []
        self._by_id: dict[str, Rule] = {}
        for component in (self._driver, *self._extensions):
            for rule in component.rules or ():
                if rule.id:
                    self._by_id.setdefault(rule.id, rule)

    def of(self, result: Result) -> Named:
        """The rule of a result; one without metadata where the run describes none."""
        reference = result.rule
        stated = result.rule_id or (reference.id if reference else None) or ""
        component, at = self._driver, result.rule_index
        if reference:
            component = self._component(reference.tool_component)
            at = reference.index if reference.index is not None else at
        # Where ID and index contradict each other, as they do in some logs, the ID is what people see.
        rule = next((self._by_id[name] for name in _lineage(stated) if name in self._by_id), None)
        rules = component.rules or []
        if rule is None and at is not None and 0 <= at < len(rules):
            rule = rules[at]
        rule = rule or Rule()
        return Named(stated or rule.id or "", rule)

    def text(self, result: Result, name: str) -> str | None:
        """The text that a message takes from its rule, or from the tool, by the text's own ID."""
        stated = self.of(result).rule.message_strings or {}
        common = self._driver.global_message_strings or {}
        text = stated.get(name) or common.get(name)
        return text.text if text else None

    def _component(self, reference: ComponentReference | None) -> Component:
        if reference is None:
            return self._driver
        at = reference.index
        if at is not None and 0 <= at < len(self._extensions):
            return self._extensions[at]
        named = (
            each
            for each in self._extensions
            if (reference.guid and each.guid == reference.guid)
            or (reference.name and each.name == reference.name)
        )
        return next(named, self._driver)


def severity_of(result: Result, rule: Rule) -> Severity:
    """How bad a result is: by its score for security, where it or its rule has one, else by its level."""
    for properties in (result.properties, rule.properties):
        score = _score(properties)
        if score is not None:
            return next((severity for least, severity in SCORES if score >= least), Severity.P3)
    usual = rule.default_configuration.level if rule.default_configuration else None
    level = result.level or ("none" if result.kind not in (None, "fail") else usual)
    return LEVELS.get(level or "", Severity.P2)


def tags_of(result: Result, rule: Rule) -> list[str]:
    """The tags of a result and its rule."""
    stated = (properties.tags for properties in (result.properties, rule.properties) if properties)
    return [tag for tags in stated if isinstance(tags, list) for tag in tags if isinstance(tag, str)]


def _lineage(rule_id: str) -> Iterator[str]:
    """An ID and those that it belongs to: ``CA1000/1`` is a case of ``CA1000``."""
    while rule_id:
        yield rule_id
        rule_id = rule_id.rpartition("/")[0]


def _score(properties: Properties | None) -> float | None:
    try:
        score = float(properties.security_severity) if properties else None
    except (TypeError, ValueError):
        return None
    return score if score is not None and score > 0 and isfinite(score) else None
