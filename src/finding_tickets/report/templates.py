"""Finding and rendering templates: the user's own, else those the tool brings along."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.errors import BadDataError, TicketsError, UsageError

if TYPE_CHECKING:
    from jinja2 import Environment, TemplateNotFound

FOLDER = "templates"
HTML = (".html.j2", ".html")
"""The endings of templates in which all that is not marked as HTML is escaped."""
# Between letters or digits, an underscore is no markup.
_MARKUP = re.compile(r"[\\`*\[<|~&]|(?<![^\W_])_|_(?![^\W_])")
PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parents[1]
SANDBOX = str(PACKAGE / "report" / "sandbox.py")


def render(name: str, context: Mapping[str, object], own: Path) -> str:
    """The template ``name`` filled in; the folder ``own`` holds the user's templates, which come first.

    Raises:
        UsageError: There is no such template.
        BadDataError: The template is wrong, or uses a name that the context does not have.
    """
    return "".join(pieces(name, context, own))


def pieces(name: str, context: Mapping[str, object], own: Path) -> Iterator[str]:
    """What ``render`` gives in pieces, made as they are taken; raises what that raises."""
    from jinja2 import TemplateNotFound, TemplateSyntaxError

    environment = _environment(own)
    try:
        yield from environment.get_template(name).generate(context)
    except TemplateNotFound as error:
        raise _missing(error, environment, _place(error, own)) from None
    except TemplateSyntaxError as error:
        raise BadDataError(str(error.message), file=error.filename, line=error.lineno) from None
    except TicketsError:
        raise
    except Exception as error:
        place = _place(error, own)
        unreadable = isinstance(error, OSError | UnicodeDecodeError)
        if place is None and unreadable:
            raise BadDataError(f"template {name} cannot be read: {error}") from None
        if place is None:
            raise
        said = f"a template cannot be read: {error}" if unreadable else _said(error)
        raise BadDataError(said, file=place.filename, line=place.lineno) from None


def _missing(
    error: TemplateNotFound, environment: Environment, place: traceback.FrameSummary | None
) -> TicketsError:
    """What is wrong where there is no such template: what was asked for, or the line that takes it in."""
    said, hint = f"there is no template {error.name}", f"there are {', '.join(environment.list_templates())}"
    if place is None:
        return UsageError(said, hint=hint)
    return BadDataError(said, file=place.filename, line=place.lineno, hint=hint)


def _place(error: Exception, own: Path) -> traceback.FrameSummary | None:
    """The innermost line of a template that an error came from; None where our own code made it."""
    from jinja2 import TemplateError

    folders = tuple(f"{folder}{os.sep}" for folder in _folders(own))
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(folders):
            return frame
        # Where a template takes in itself, any code may be called last; filters are given what is unknown.
        ours = Path(frame.filename).is_relative_to(PACKAGE) and frame.filename != SANDBOX
        if ours and not isinstance(error, RecursionError | TemplateError):
            return None
    return None


def _said(error: Exception) -> str:
    from jinja2 import TemplateError

    return error.message or "" if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"


def source(name: str, own: Path) -> str:
    """The text of a file among the templates as it stands there, with plain line ends.

    Raises:
        UsageError: There is no such file.
        BadDataError: It cannot be read.
    """
    folders = (folder / name for folder in _folders(own))
    file = next((file for file in folders if file.is_file()), None)
    if file is None:
        raise UsageError(f"there is no template {name}")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataError(f"template {name} cannot be read: {error}") from None


def _folders(own: Path) -> list[Path]:
    # The checkout's folder serves an editable install, where the wheel's copy does not exist.
    return [own, PACKAGE / FOLDER, CHECKOUT / FOLDER]


# Templates are compiled once for all the tickets that one run writes.
@lru_cache(maxsize=1)
def _environment(own: Path) -> Environment:
    from jinja2 import FileSystemLoader, StrictUndefined

    from finding_tickets.report.sandbox import Sandbox

    # A report runs no code: the templates of a repository come from whoever wrote to it.
    environment = Sandbox(
        loader=FileSystemLoader(_folders(own)),
        # Nothing changes while a report is made, and asking for each section whether it has takes time.
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # The other templates make Markdown, Python and YAML.
        autoescape=lambda name: name is not None and name.endswith(HTML),
    )
    environment.filters |= {"cell": cell, "code": code, "text": text}
    return environment


def cell(value: object) -> str:
    """A value as the content of a Markdown table cell: one line, its pipes escaped."""
    return " ".join(str(value).split()).replace("\\", "\\\\").replace("|", "\\|")


def text(value: object) -> str:
    """A value that is no Markdown as Markdown within a line that shows it, also in the cell of a table."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(str(value).split()))


def code(value: object) -> str:
    """A value as a code span of Markdown outside of tables: one line, whatever backticks are in it."""
    line = " ".join(str(value).split())
    runs = [len(run) for run in re.findall("`+", line)]
    ticks = "`" * next(size for size in range(1, len(runs) + 2) if size not in runs)
    space = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{ticks}{space}{line}{space}{ticks}"
