"""The page that lists all rules."""

from pathlib import Path

from simcuda.cost.rules import RULES
from simcuda.rules import page

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_of_rules_is_what_the_rules_say() -> None:
    """docs/simcuda-rules.md is what ``python -m simcuda.rules`` prints, a line for each rule."""
    text = page()
    assert {rule.id for rule in RULES} <= {
        line.split(" | ")[0].removeprefix("| ") for line in text.splitlines()
    }
    assert (DOCS / "simcuda-rules.md").read_text() == text
