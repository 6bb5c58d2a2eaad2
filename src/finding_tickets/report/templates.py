"""Finding and rendering templates: the user's own, else those the tool brings along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.errors import BadDataError, UsageError

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = "templates"
PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parents[1]


def render(name: str, context: Mapping[str, object], own: Path) -> str:
    """The template ``name`` filled in; the folder ``own`` holds the user's templates, which come first.

    Raises:
        UsageError: There is no such template.
        BadDataError: The template is wrong, or uses a name that the context does not have.
    """
    return "".join(pieces(name, context, own))


def pieces(name: str, context: Mapping[str, object], own: Path) -> Iterator[str]:
    """What ``render`` gives in pieces, made as they are taken; raises what that raises."""
    from jinja2 import TemplateError, TemplateNotFound, TemplateSyntaxError

    environment = _environment(own)
    try:
        yield from environment.get_template(name).generate(context)
    except TemplateNotFound as error:
        names = ", ".join(environment.list_templates())
        raise UsageError(f"there is no template {error.name}", hint=f"there are {names}") from None
    except TemplateSyntaxError as error:
        raise BadDataError(str(error.message), file=error.filename, line=error.lineno) from None
    except TemplateError as error:
        raise BadDataError(f"template {name}: {error.message}") from None


def _environment(own: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # The checkout's folder serves an editable install, where the wheel's copy does not exist.
    folders = [own, PACKAGE / FOLDER, CHECKOUT / FOLDER]
    environment = Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - the templates make Markdown and Python, not HTML
    )
    environment.filters["cell"] = cell
    return environment


def cell(value: object) -> str:
    """A value as the content of a Markdown table cell: one line, its pipes escaped."""
    return " ".join(str(value).split()).replace("\\", "\\\\").replace("|", "\\|")
