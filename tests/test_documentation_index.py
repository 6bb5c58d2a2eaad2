"""The index of the documentation leads to all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, meta

from finding_tickets.cli.main import COMMANDS, application

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [
    *sorted(DOCS.parent.glob("*.md")),
    *sorted(DOCS.glob("*.md")),
    *DOCS.parent.glob("skills/*/SKILL.md"),
]
BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`(tickets [^`\n]*)`")
OPTION = re.compile(r"--[a-z][a-z-]*")
ELSEWHERE = re.compile(r"\s(?:#|\||>|&&|2>|-- |--run \")")
"""What follows is a remark, or for another program."""
REMOVED = re.compile(r"^### Removed$.*?(?=^##)", re.MULTILINE | re.DOTALL)
"""The section of the changelog about what is there no more."""


def command_lines(page: Path) -> Iterator[str]:
    """Every command line of the tool in a page, in blocks and in the text."""
    text = REMOVED.sub("", page.read_text(encoding="utf-8"))
    yield from CODE.findall(BLOCK.sub("", text))
    for block in BLOCK.findall(text):
        lines = (line.strip().removeprefix("$ ") for line in block.split("\n"))
        yield from (line for line in lines if re.match(r"tickets [a-z-]", line))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_that_is_shown_exists(page: Path) -> None:
    """Commands, and the options that they are given, are those of the tool."""
    tool: Any = application(COMMANDS)
    known = {"": {*(option for each in tool.params for option in each.opts)}}
    for name, command in tool.commands.items():
        known[name] = {option for each in command.params for option in each.opts}
    for line in command_lines(page):
        ours = ELSEWHERE.split(line)[0]
        words = ours.split()
        name = " ".join(words[1:3]) if " ".join(words[1:3]) in known else words[1]
        # COMMAND stands for any of them.
        if not name.isupper():
            options = known["" if name.startswith("--") else name]
            assert set(OPTION.findall(ours)) <= options | {"--help"}, line


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
