"""Templates: the user's own or the tool's, in Jinja's sandbox, and the files of a new ticket."""

from __future__ import annotations

import ast
import json
import os
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import (
    Environment,
    FileSystemLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
)
from jinja2.sandbox import ImmutableSandboxedEnvironment

from finding_tickets.claims.language import suggest
from finding_tickets.errors import BadDataError, TicketsError, UsageError
from finding_tickets.ground.files import fixes_folder, verifier_path
from finding_tickets.model.vocabulary import squeeze, word_for

if TYPE_CHECKING:
    from finding_tickets.register.load import Register
    from finding_tickets.register.new import Draft

FOLDER = "templates"
# The endings of templates in which all that is not marked as HTML is escaped.
HTML = (".html.j2", ".html")
TICKET = "ticket.md.j2"
TO_MEASURE = "Measure what it costs before and after the fix"

# Between letters or digits, an underscore is no markup.
_MARKUP = re.compile(r"[\\`*\[<|~&]|(?<![^\W_])_|_(?![^\W_])")
_PACKAGE = Path(__file__).resolve().parents[1]
# The checkout's folder serves an editable install, where the wheel's copy does not exist.
_OUR_FOLDERS = (_PACKAGE / FOLDER, _PACKAGE.parents[1] / FOLDER)


def render(name: str, context: Mapping[str, object], own: Path | None = None) -> str:
    """Fill in the template ``name``. The user's templates in the folder ``own`` come first.

    Raises:
        UsageError: The template does not exist.
        BadDataError: The template is wrong, or uses a name that the context does not have.
    """
    return "".join(render_pieces(name, context, own))


def render_pieces(
    name: str, context: Mapping[str, object], own: Path | None
) -> Iterator[str]:
    """Yield what ``render`` returns, piece by piece; raise what that raises."""
    environment = _environment(own)
    try:
        yield from environment.get_template(name).generate(context)
    except TemplateSyntaxError as error:
        raise BadDataError(
            str(error.message), file=error.filename, line=error.lineno
        ) from None
    # What our own code says of other files is no error of the template.
    except TicketsError:
        raise
    except Exception as error:
        place = _place(error, own)
        if place is None:
            if isinstance(error, TemplateNotFound):
                raise _missing(error, environment) from None
            if isinstance(error, OSError | UnicodeDecodeError):
                raise BadDataError(f"template {name} cannot be read: {error}") from None
            raise
        said = (
            str(error)
            if isinstance(error, TemplateError)
            else f"{type(error).__name__}: {error}"
        )
        if isinstance(error, TemplateNotFound):
            said = _missing(error, environment).message
        raise BadDataError(said, file=place.filename, line=place.lineno) from None


def _missing(error: TemplateNotFound, environment: Environment) -> UsageError:
    there = ", ".join(environment.list_templates())
    return UsageError(f"there is no template {error.name}", hint=f"there are {there}")


def _place(error: Exception, own: Path | None) -> traceback.FrameSummary | None:
    """Return the innermost line of a template that an error came from; None if our own code made it."""
    folders = tuple(f"{folder}{os.sep}" for folder in _folders(own))
    # An unknown name may be found out in a filter, and the last call of a recursion may be any.
    is_of_jinja = isinstance(error, TemplateError | RecursionError)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(folders):
            return frame
        if Path(frame.filename).is_relative_to(_PACKAGE) and not is_of_jinja:
            return None
    return None


def source(name: str, own: Path) -> str:
    """Return the text of a template file.

    Raises:
        UsageError: The file does not exist.
        BadDataError: It cannot be read.
    """
    environment = _environment(own)
    try:
        return FileSystemLoader(_folders(own)).get_source(environment, name)[0]
    except TemplateNotFound as error:
        raise _missing(error, environment) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataError(f"template {name} cannot be read: {error}") from None


def _folders(own: Path | None) -> list[Path]:
    return [*([own] if own else []), *_OUR_FOLDERS]


# Templates are compiled once for all the tickets that one run writes.
@lru_cache(maxsize=1)
def _environment(own: Path | None) -> Environment:
    environment = ImmutableSandboxedEnvironment(
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
    environment.filters |= {
        "cell": cell,
        "code": code,
        "fenced": fenced,
        "quoted": quoted,
        "text": text,
    }
    return environment


def quoted(value: object) -> str:
    """A value as a text in YAML or TOML, which have no plain DEL."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def cell(value: object) -> str:
    """A value as the content of a Markdown table cell: one line, its pipes escaped."""
    return " ".join(str(value).split()).replace("\\", "\\\\").replace("|", "\\|")


def text(value: object) -> str:
    """A value that is no Markdown as Markdown within a line that shows it, also in the cell of a table."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(str(value).split()))


def code(value: object) -> str:
    """A value as a code span of Markdown outside of tables: one line, whatever backticks are in it."""
    # As ``code_span`` of the documents, which a page that only lists tickets does not load.
    line = " ".join(str(value).split())
    ticks = "`" * (_longest_run(line) + 1)
    space = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def fenced(value: str, language: str) -> str:
    """A fenced block of Markdown, which no line of its text ends."""
    fence = "`" * max(3, _longest_run(value) + 1)
    return f"{fence}{language}\n{value}\n{fence}"


def _longest_run(text: str) -> int:
    """Return the length of the longest run of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)


@dataclass(frozen=True, kw_only=True)
class Attached:
    """The files and values that a new ticket has in addition to its content.

    Attributes:
        ticket: The template of the ticket.
        remediation: The template of its Remediation block, if it has one.
        files: Templates by path, in which ``{verifier}`` and ``{fixes}`` are the usual places of the ticket.
        context: What these templates know beyond what a ticket's usually knows.
        mark: What is to be found in the ticket again; a comment has it where the template leaves it out.
    """

    ticket: str = TICKET
    remediation: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, object] = field(default_factory=dict)
    mark: str = ""


def scaffold(draft: Draft, root: Path) -> Attached:
    """Return a verifier to complete: for the function that a ticket names, or with variants to write.

    Raises:
        UsageError: The file defines no such function.
    """
    named = [(place.file, place.symbol) for place in draft.locations if place.symbol]
    files = {"{verifier}": "verifier.py.j2"}
    if not named:
        files |= {
            "{fixes}/found.py": "variant.py.j2",
            "{fixes}/fix.py": "variant.py.j2",
        }
        context: dict[str, object] = {
            "target": None,
            "found": "",
            "arguments": {"values": ""},
        }
    else:
        file, symbol = named[0]
        context = _function_context(file, symbol.removesuffix("()"), root)
    return Attached(remediation="remediation.yaml.j2", files=files, context=context)


def _function_context(file: str, name: str, root: Path) -> dict[str, object]:
    """Return what the template of a verifier says of a function."""
    from finding_tickets.ground.git import commit_containing
    from finding_tickets.ground.imports import module_of
    from finding_tickets.measure.tasks import FunctionPath, find_function

    path = FunctionPath(file, name)
    _, body, function = find_function(path, root)
    if function is None:
        there = [
            node.name
            for node in body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        ]
        hint = suggest(path.function.rpartition(".")[2], there)
        raise UsageError(f"{file} defines no function {path.function}", hint=hint)
    given = function.args.posonlyargs + function.args.args
    needed = given[: len(given) - len(function.args.defaults)]
    commit = commit_containing(root, [file])
    return {
        "target": path,
        "module": module_of(file),
        "found": f"{file}:{path.function}{f'@{commit}' if commit else ''}",
        # Each with its annotation, as far as that is a name.
        "arguments": {each.arg: getattr(each.annotation, "id", "") for each in needed},
    }


def ticket_files(
    register: Register,
    draft: Draft,
    ticket_id: str,
    path: str,
    today: date,
    attached: Attached | None,
) -> dict[str, str]:
    """The text of every file by its path from the root; the ticket is at ``path`` and comes first.

    Raises:
        BadDataError: The ticket would not be understood when it is read again.
    """
    # Reports use templates as well, and read no ticket.
    from finding_tickets.documents.reading import read_document

    attached = attached or Attached()
    vocabulary = register.config.vocabulary
    usual = {"verifier": verifier_path(ticket_id), "fixes": fixes_folder(ticket_id)}
    ticked = {word_for(name, vocabulary.categories): name for name in draft.categories}
    if None in ticked:
        raise BadDataError(
            f"unknown category {ticked[None]}",
            hint=f"one of {', '.join(vocabulary.categories)}",
        )
    context = {
        "draft": draft,
        "id": ticket_id,
        "today": today.isoformat(),
        "locations": draft.locations,
        "categories": [(name, name in ticked) for name in vocabulary.categories],
        "checklist": draft.checklist or (TO_MEASURE,),
        "remediation": attached.remediation,
        **usual,
        **attached.context,
    }
    own = register.root / register.config.templates
    templates = {path: attached.ticket}
    # Files beside the ticket are named after its ID.
    templates |= {
        place.format(**usual): template for place, template in attached.files.items()
    }
    texts = {
        name: render(template, context, own) for name, template in templates.items()
    }
    # Imports recognise a finding by its mark; a template of the user may have left it out.
    if attached.mark not in texts[path]:
        texts[path] += f"\n<!-- {attached.mark} -->\n"
    # A ticket that reads back as something else than was asked for is not written.
    document, problems = read_document(texts[path].encode(), path, vocabulary)
    for problem in problems:
        raise BadDataError(
            f"the ticket cannot be written: {problem.message}", hint=problem.hint
        )
    if document is None or document.kind != "finding" or document.id.value != ticket_id:
        raise BadDataError(
            f"the ticket cannot be written: it would not be read as {ticket_id}"
        )
    if squeeze(document.title.value) != squeeze(draft.title):
        raise BadDataError(
            f"the title would be read as {document.title.value!r}",
            hint="write it without markup",
        )
    return texts
