"""Which cases there are: the suites, and the selection from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from simcuda.cost.rules import RULES, CostRule, example_names, run_example
from simcuda.recording import operators, verifiers, workloads
from simcuda.recording.case import Case, Groups, Work, digest, seed_all

WILDCARD = re.compile(r"[*?[]")


@dataclass(frozen=True)
class Selection:
    """The cases that a recording is to contain.

    Attributes:
        samples: Most samples of one operator.
        only: Shell patterns; the id of a case must match one of them. Without any, all are selected.
        cases: Verifier files, or folders of them.
        within: More patterns, one of which must match too.
    """

    samples: int
    only: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    within: tuple[str, ...] = ()

    def has(self, case: str) -> bool:
        """Whether a case is selected, by its id."""
        return all(
            any(fnmatchcase(case, pattern) for pattern in patterns)
            for patterns in (self.only, self.within)
            if patterns
        )

    def may_have_of(self, group: str) -> bool:
        """Whether a group may hold cases that are selected, by its name."""
        # A pattern may match if what it says before its first wildcard agrees with how the ids begin.
        beginning = f"{group}/"
        literals = (
            [WILDCARD.split(p)[0] for p in patterns] for patterns in (self.only, self.within) if patterns
        )
        return all(
            any(beginning.startswith(literal) or literal.startswith(beginning) for literal in some)
            for some in literals
        )

    def suites(self) -> list[str]:
        """The suites that may hold selected cases; each verifier file is a suite.

        Raises:
            FileNotFoundError: There is no such verifier.
        """
        files = [file for path in self.cases for file in verifiers.files(Path(path))]
        named = {**{str(file): f"verifier/{file.stem}" for file in files}, **GROUP_NAMES}
        return [suite for suite, name in named.items() if self.may_have_of(name)]

    def groups(self, suite: str) -> Groups:
        """The groups of a suite that may hold selected cases.

        Raises:
            ImportError: The suite needs something that is not installed.
        """
        match suite:
            case "operators":
                groups: Groups = operators.groups(self.samples)
            case "rules":
                groups = {
                    "rule": lambda: (
                        Case(f"rule/{rule.id}", partial(_prepare_rule, rule), digest(rule.example))
                        for rule in RULES
                    )
                }
            case "optimizers":
                groups = {"optimizer": operators.optimizer_cases}
            case "workloads":
                groups = {"workload": lambda: workloads.CASES}
            case _:
                file = Path(suite)
                groups = {f"verifier/{file.stem}": partial(verifiers.cases, file.resolve())}
        return {name: cases for name, cases in groups.items() if self.may_have_of(name)}


GROUP_NAMES = {"rules": "rule", "workloads": "workload", "optimizers": "optimizer", "operators": "op"}
"""How the names of groups begin, by suite; the long one comes last, where time may run out."""


def _prepare_rule(rule: CostRule, seed: int) -> Work:
    seed_all(seed)
    # The tensors that the example uses are made before it is measured.
    names = example_names()
    return lambda: run_example(rule, names)
