"""The index of the documentation leads to all of it."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, meta

DOCS = Path(__file__).parents[1] / "docs"


def test_every_page_is_in_the_index() -> None:
    """docs/README.md links each page of its folder."""
    index = DOCS / "README.md"
    linked = set(re.findall(r"\]\(([a-z-]+\.md)", index.read_text(encoding="utf-8")))
    assert linked == {page.name for page in DOCS.glob("*.md")} - {index.name}


def test_every_template_is_documented() -> None:
    """docs/templates.md says of each template what is made from it."""
    named = set(re.findall(r"`([a-z_]+\.[a-z0-9.]+)`", (DOCS / "templates.md").read_text(encoding="utf-8")))
    workflow = "tickets.yml"
    assert {file.name for file in (DOCS.parent / "templates").iterdir()} - {workflow} <= named


def test_the_names_of_a_ticket_template_are_documented() -> None:
    """Whatever the tool's own template of a ticket uses, the page explains."""
    template = (DOCS.parent / "templates/ticket.md.j2").read_text(encoding="utf-8")
    page = (DOCS / "templates.md").read_text(encoding="utf-8")
    environment = Environment(autoescape=True)
    environment.filters["cell"] = str
    assert meta.find_undeclared_variables(environment.parse(template)) <= set(re.findall(r"`([a-z]+)`", page))
    assert set(re.findall(r"draft(\.[a-z_]+)", template)) <= set(re.findall(r"`(\.[a-z_]+)`", page))
