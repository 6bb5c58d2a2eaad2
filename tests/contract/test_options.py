"""The commands, and the options and arguments of each, as the command line declares them."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.core
from tests.contract.conftest import ROOT

if TYPE_CHECKING:
    from tests.contract.conftest import Frozen, Tool


@pytest.fixture(scope="module")
def program(tool: Tool) -> Any:
    """The whole command line, caught as it is about to read a command that there is not."""
    caught: list[Any] = []

    def catch(self: typer.core.TyperGroup, *_: object, **__: object) -> None:
        caught.append(self)
        raise SystemExit(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.core.TyperGroup, "main", catch)
        tool(ROOT, "no-such-command")
    (program,) = caught
    return program


def plain(value: Any) -> Any:
    """A default as a user would write it."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else str(value) if isinstance(value, Path) else value


def described(parameter: Any) -> dict[str, Any]:
    """What a user has to know of an option or argument, but for its help."""
    kind = parameter.type
    limits = {
        key: getattr(kind, key) for key in ("min", "max", "choices") if getattr(kind, key, None) is not None
    }
    told = {
        "names": [*parameter.opts, *parameter.secondary_opts]
        if parameter.param_type_name == "option"
        else None,
        "shown as": parameter.metavar,
        "type": kind.name,
        "default": plain(parameter.default),
        "required": parameter.required,
        "repeatable": parameter.multiple,
        "count": parameter.nargs,
        "flag": getattr(parameter, "is_flag", False),
        "hidden": getattr(parameter, "hidden", False),
        "environment": parameter.envvar,
    }
    usual = {"required": False, "repeatable": False, "count": 1, "flag": False, "hidden": False}
    kept = {key: value for key, value in told.items() if value is not None and usual.get(key) != value}
    return kept | {key: plain(list(value) if key == "choices" else value) for key, value in limits.items()}


def test_commands_and_options(program: Any, frozen: Frozen) -> None:
    """Names, types, defaults and choices are what is frozen, and commands come in this order."""
    commands = {
        name: [described(parameter) for parameter in command.params if parameter.name != "help"]
        for name, command in program.commands.items()
    }
    frozen("options", "order", list(commands))
    frozen("options", "program", [described(parameter) for parameter in program.params])
    frozen("options", "commands", commands)


def test_the_page_and_the_help_name_them(program: Any, tool: Tool) -> None:
    """docs/commands.md and ``tickets COMMAND --help`` have every option of every command, and no other."""
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## ([a-z ]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert list(program.commands) == list(sections)
    for name, command in program.commands.items():
        names = {each for parameter in command.params for each in parameter.opts if each.startswith("-")} - {
            "--help"
        }
        rows = re.findall(r"^\| `((?:-[a-z], )?--[a-z-]+)", sections[name], re.MULTILINE)
        assert names == {each for row in rows for each in row.split(", ")}
        answer = tool(ROOT, name, "--help")
        assert (0, answer.out) == (answer.code, tool(ROOT, name, "-h").out)
        shown = re.findall(r"^  ((?:-[a-z], )?--[a-z-]+)", answer.out, re.MULTILINE)
        assert {*names, "-h", "--help"} == {each for row in shown for each in row.split(", ")}
