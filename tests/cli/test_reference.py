"""The page of all commands says what the commands say."""

from __future__ import annotations

import re
from pathlib import Path

from docs.pages.commands import page

from finding_tickets.cli.main import COMMANDS

PAGE = Path(__file__).parents[2] / "docs/commands.md"


def test_the_page_is_current() -> None:
    """docs/commands.md is what ``python -m docs.pages.commands`` prints."""
    made = "python -m docs.pages.commands > docs/commands.md"
    assert page() == PAGE.read_text(encoding="utf-8"), f"make it with {made}"


def test_the_page_has_every_command_with_its_options() -> None:
    """A heading for each command; below it its usage and a row for each argument and option."""
    sections = dict(re.findall(r"^## ([a-z ]+)\n(.*?)(?=^## |\Z)", page(), re.MULTILINE | re.DOTALL))
    assert list(COMMANDS) == list(sections)
    assert "    tickets set [OPTIONS] ID... KEY=VALUE...\n" in sections["set"]
    assert "| `--seed N` | Draw inputs with this seed, as another run did. |\n" in sections["verify"]
    # What many commands take is described once, above the first of them.
    shared = "`--format <table\\|json>` | "
    assert f"| {shared} |" in sections["show"]
    above = page().partition("\n## ")[0]
    assert f"| {shared}How the data is printed. (default: table) |" in above
    assert "| `--timeout SECONDS` | Stop a measurement after this time. (at least 0.1) |" in above
