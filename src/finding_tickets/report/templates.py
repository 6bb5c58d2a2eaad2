"""Templates: the user's own or the tool's, what they may do, and the files of a new ticket."""

from __future__ import annotations

import difflib
import os
import re
import resource
import signal
import stat
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from pathlib import Path, PurePath
from types import MethodType
from typing import TYPE_CHECKING, Any

from jinja2 import (
    Environment,
    FileSystemLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
)
from jinja2.filters import do_round
from jinja2.loaders import split_template_path
from jinja2.sandbox import ImmutableSandboxedEnvironment

from finding_tickets.errors import BadDataError, TicketsError, UsageError
from finding_tickets.ground.files import fixes_folder, verifier_path
from finding_tickets.model.vocabulary import squeeze, word_for
from finding_tickets.register.config import is_repository

if TYPE_CHECKING:
    from finding_tickets.register.load import Register
    from finding_tickets.register.new import Draft

FOLDER = "templates"
HTML = (".html.j2", ".html")
"""The endings of templates in which all that is not marked as HTML is escaped."""
TICKET = "ticket.md.j2"
TO_MEASURE = "Measure what it costs before and after the fix"
OURS = __name__.partition(".")[0]
MADE_FOR_TEMPLATES = (f"{OURS}.report.", "jinja2.", "markupsafe.")
"""The packages whose methods templates may call. Those of records can read any file and run what is in it."""

LARGEST = 4 << 20
"""Bytes of the largest template of a repository."""
MOST_SECONDS, MOST_MEMORY, MOST_OUTPUT, MOST_BITS = 30, 1 << 30, 128 << 20, 4096
"""What a repository's templates may take: time of the processor, bytes, characters, bits of an integer."""

# Between letters or digits, an underscore is no markup.
_MARKUP = re.compile(r"[\\`*\[<|~&]|(?<![^\W_])_|_(?![^\W_])")
_PACKAGE = Path(__file__).resolve().parents[1]
# The checkout's folder serves an editable install, where the wheel's copy does not exist.
_OUR_FOLDERS = (_PACKAGE / FOLDER, _PACKAGE.parents[1] / FOLDER)


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, in which templates read records, run no code and touch no file.

    Whether a record of ours may be asked for a field is found out once for its class: a large report asks a
    million times.
    """

    # No signal interrupts Python while it calculates with huge integers.
    intercepted_binops = frozenset({"*", "**"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._known: set[tuple[type, str]] = set()

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """A product or power, unless it is an integer of too many bits."""
        if isinstance(left, int) and isinstance(right, int):
            bits, more = left.bit_length(), right.bit_length()
            if (bits * abs(right) if operator == "**" else bits + more) > MOST_BITS:
                raise OverflowError(f"an integer of more than {MOST_BITS} bits")
        return super().call_binop(context, operator, left, right)

    @staticmethod
    def round_to(value: float, precision: int = 0, method: Any = "common") -> float:
        """The filter ``round``, which raises 10 to the power of the precision."""
        return do_round(value, max(-MOST_BITS, min(precision, MOST_BITS)), method)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A field, as the base class gives it."""
        key = (type(obj), attribute)
        # Safe once is safe for every value of the class.
        if key in self._known:
            return getattr(obj, attribute)
        value = super().getattr(obj, attribute)
        is_ours = type(obj).__module__.partition(".")[0] == OURS
        if is_ours and hasattr(obj, attribute) and self.is_safe_attribute(obj, attribute, value):
            self._known.add(key)
        return value

    def is_safe_callable(self, obj: Any) -> bool:
        """A function is there because a template was given it; of methods, those made for templates."""
        if isinstance(obj, MethodType):
            module = getattr(obj.__func__, "__module__", None) or ""
            if not f"{module}.".startswith(MADE_FOR_TEMPLATES):
                return False
        return super().is_safe_callable(obj)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """A path can read and write files."""
        return not isinstance(obj, PurePath) and super().is_safe_attribute(obj, attr, value)


def render(name: str, context: Mapping[str, object], own: Path | None = None) -> str:
    """The template ``name`` filled in; the folder ``own`` holds the user's templates, which come first.

    Raises:
        UsageError: There is no such template.
        BadDataError: The template is wrong, or uses a name that the context does not have.
    """
    return "".join(render_pieces(name, context, own))


def render_pieces(name: str, context: Mapping[str, object], own: Path | None) -> Iterator[str]:
    """What ``render`` gives, piece by piece, as the pieces are asked for; raises what that raises."""
    environment = _environment(own)
    try:
        if own and own.is_dir():
            yield from _limited(environment, name, context)
        else:
            yield from environment.get_template(name).generate(context)
    except TemplateSyntaxError as error:
        raise BadDataError(str(error.message), file=error.filename, line=error.lineno) from None
    # What our own code says of other files is no error of the template.
    except TicketsError:
        raise
    except Exception as error:
        place, hint = _place(error, own), None
        file, line = (place.filename, place.lineno) if place else (None, None)
        if isinstance(error, TemplateNotFound):
            said, hint = f"there is no template {error.name}", ", ".join(environment.list_templates())
            if place is None:
                raise UsageError(said, hint=f"there are {hint}") from None
        elif isinstance(error, OSError | UnicodeDecodeError):
            said = f"{'a template' if place else f'template {name}'} cannot be read: {error}"
        elif place is None:
            raise
        else:
            said = str(error) if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
            said = f"it needs more than {MOST_MEMORY >> 20} MiB" if isinstance(error, MemoryError) else said
        raise BadDataError(said, file=file, line=line, hint=hint and f"there are {hint}") from None


def _limited(environment: TemplateSandbox, name: str, context: Mapping[str, object]) -> list[str]:
    """All that templates of a repository generate; a ``TemplateError`` says which limit they pass.

    Elsewhere than in the main thread only the output has a limit.
    """

    def end(*_: object) -> None:
        raise TemplateError(f"it takes more than {MOST_SECONDS} seconds")

    made: list[str] = []
    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            stack.callback(signal.signal, signal.SIGPROF, signal.signal(signal.SIGPROF, end))
            # Once more, in case that something ignores the first one.
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS, 1)
            stack.callback(signal.setitimer, signal.ITIMER_PROF, 0)
            with suppress(OSError, ValueError):
                pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
                soft, hard = resource.getrlimit(resource.RLIMIT_AS)
                room = pages * resource.getpagesize() + MOST_MEMORY
                if soft == resource.RLIM_INFINITY or soft > room:
                    resource.setrlimit(resource.RLIMIT_AS, (room, hard))
                    stack.callback(resource.setrlimit, resource.RLIMIT_AS, (soft, hard))
        left = MOST_OUTPUT
        pieces: Any = environment.get_template(name).generate(context)
        for piece in pieces:
            made.append(piece)
            left -= len(piece)
            if left < 0:
                # Thrown where the template is, so that its line is known.
                pieces.throw(TemplateError(f"it writes more than {MOST_OUTPUT >> 20} MiB"))
    return made


def _place(error: Exception, own: Path | None) -> traceback.FrameSummary | None:
    """The innermost line of a template that an error came from; None where our own code made it."""
    folders = tuple(f"{folder}{os.sep}" for folder in _folders(own))
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(folders):
            return frame
        # A template calls the sandbox for each field. Where a template includes itself, any code may be
        # called last; filters are given what is unknown.
        of_sandbox = frame.filename == __file__ and frame.name in {*vars(TemplateSandbox), *vars(_Loader)}
        is_ours = Path(frame.filename).is_relative_to(_PACKAGE) and not of_sandbox
        if is_ours and not isinstance(error, RecursionError | TemplateError):
            return None
    return None


def source(name: str, own: Path) -> str:
    """The text of a file among the templates as it stands there, with plain line ends.

    Raises:
        UsageError: There is no such file.
        BadDataError: It cannot be read.
    """
    try:
        return _Loader(own).get_source(_environment(own), name)[0]
    except TemplateNotFound:
        raise UsageError(f"there is no template {name}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataError(f"template {name} cannot be read: {error}") from None


class _Loader(FileSystemLoader):
    """Templates of the folder ``own``, which are regular files inside the repository, before the tool's."""

    def __init__(self, own: Path | None) -> None:
        super().__init__(_folders(own))
        self._own = own
        # A link may lead elsewhere in the repository, whose top is where its register is.
        tops = [each for each in own.parents if is_repository(each)] + [own.parent] if own else []
        self._root = os.path.realpath(tops[0]) if tops else ""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """The text of a template, and its file; it stays what it is."""
        del environment
        name = "/".join(split_template_path(template))
        for folder in map(Path, self.searchpath):
            file = folder / name
            if not name or not os.path.lexists(file) or file.is_dir():
                continue
            if folder == self._own and not Path(os.path.realpath(file)).is_relative_to(self._root):
                raise BadDataError("the link leaves the repository", file=str(file))
            # Opening a pipe to read it would wait for somebody to write.
            with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
                status = os.fstat(stream.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise BadDataError("not a regular file", file=str(file))
                if status.st_size > LARGEST:
                    raise BadDataError(f"a template of more than {LARGEST >> 20} MiB", file=str(file))
                text = stream.read(LARGEST).decode()
            return text.replace("\r\n", "\n").replace("\r", "\n"), str(file), lambda: True
        raise TemplateNotFound(template)


def _folders(own: Path | None) -> list[Path]:
    return [*([own] if own else []), *_OUR_FOLDERS]


# Templates are compiled once for all the tickets that one run writes.
@lru_cache(maxsize=1)
def _environment(own: Path | None) -> TemplateSandbox:
    # A report runs no code: the templates of a repository come from whoever wrote to it.
    environment = TemplateSandbox(
        loader=_Loader(own),
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
        "text": text,
        "round": TemplateSandbox.round_to,
    }
    return environment


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
    """How many backticks follow one another at most."""
    return max(map(len, re.findall("`+", text)), default=0)


@dataclass(frozen=True, kw_only=True)
class Attached:
    """What a ticket brings along beside its own content.

    Attributes:
        ticket: The template of the ticket.
        remediation: The template of its Remediation block, if it has one.
        files: Templates by path, in which ``{verifier}`` and ``{fixes}`` are the usual places of the ticket.
        place: The file, which may be such a path, and the symbol of a ticket that states no location.
        checklist: The checklist of a ticket that states none.
        context: What these templates know beyond what a ticket's usually knows.
        mark: What is to be found in the ticket again; a comment has it where the template leaves it out.
    """

    ticket: str = TICKET
    remediation: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    place: tuple[str, str] | None = None
    checklist: tuple[str, ...] = (TO_MEASURE,)
    context: Mapping[str, object] = field(default_factory=dict)
    mark: str = ""


EXAMPLE = Attached(
    remediation="example.yaml.j2",
    files={"{verifier}": "verifier.py.j2", "{fixes}/found.py": "found.py.j2", "{fixes}/fix.py": "fix.py.j2"},
    place=("{fixes}/found.py", "nan_flags()"),
    checklist=("One wait for the GPU instead of one per tensor, with the same result",),
)
"""A verifier and two variants that run, to be replaced by the code that the ticket is about."""


def scaffold(draft: Draft, root: Path) -> Attached:
    """A verifier to complete, of the function that a ticket names; an example where it names none.

    Raises:
        UsageError: There is no such function in the file.
    """
    from finding_tickets.ground.git import commit_containing
    from finding_tickets.ground.imports import module_of
    from finding_tickets.measure.tasks import FunctionPath, find_function

    place = next((each for each in draft.locations if each.symbol), None)
    if place is None or place.symbol is None:
        return EXAMPLE
    path = FunctionPath(place.file, place.symbol.removesuffix("()"))
    _, body, function = find_function(path, root)
    if function is None:
        there = [name for each in body if (name := getattr(each, "name", None))]
        like = difflib.get_close_matches(path.function.rpartition(".")[2], there, n=1)
        hint = f"did you mean {like[0]}?" if like else "name a function: --file PATH --symbol NAME"
        raise UsageError(f"{place.file} defines no function {path.function}", hint=hint)
    given = function.args.posonlyargs + function.args.args
    needed = given[: len(given) - len(function.args.defaults)]
    commit = commit_containing(root, [place.file])
    context = {
        "target": path,
        "module": module_of(place.file),
        "found": f"{place.file}:{path.function}{f'@{commit}' if commit else ''}",
        # Each with its annotation, as far as that is a name.
        "arguments": {each.arg: getattr(each.annotation, "id", "") for each in needed},
    }
    files = {"{verifier}": "function_verifier.py.j2"}
    return Attached(remediation="function.yaml.j2", files=files, context=context)


def ticket_files(
    register: Register, draft: Draft, ticket_id: str, path: str, today: date, attached: Attached | None
) -> dict[str, str]:
    """The text of every file by its path from the root; the ticket is at ``path`` and comes first.

    Raises:
        BadDataError: The ticket would not be understood when it is read again.
    """
    # Reports use templates as well, and read no ticket.
    from finding_tickets.documents.reading import read_document
    from finding_tickets.register.new import Place

    attached = attached or Attached()
    vocabulary = register.config.vocabulary
    usual = {"verifier": verifier_path(ticket_id), "fixes": fixes_folder(ticket_id)}
    locations = list(draft.locations)
    if attached.place and not locations:
        file, symbol = attached.place
        locations = [Place(file=file.format(**usual), symbol=symbol)]
    ticked = {word_for(name, vocabulary.categories): name for name in draft.categories}
    if None in ticked:
        raise BadDataError(
            f"unknown category {ticked[None]}", hint=f"one of {', '.join(vocabulary.categories)}"
        )
    context = {
        "draft": draft,
        "id": ticket_id,
        "today": today.isoformat(),
        "locations": locations,
        "categories": [(name, name in ticked) for name in vocabulary.categories],
        "checklist": draft.checklist or attached.checklist,
        "remediation": attached.remediation,
        **usual,
        **attached.context,
    }
    own = register.root / register.config.templates
    templates = {path: attached.ticket}
    # Files beside the ticket are named after its ID.
    templates |= {place.format(**usual): template for place, template in attached.files.items()}
    texts = {name: render(template, context, own) for name, template in templates.items()}
    # Imports recognise a finding by its mark; a template of the user may have left it out.
    if attached.mark not in texts[path]:
        texts[path] += f"\n<!-- {attached.mark} -->\n"
    # A ticket that reads back as something else than was asked for is not written.
    document, problems = read_document(texts[path].encode(), path, vocabulary)
    for problem in problems:
        raise BadDataError(f"the ticket cannot be written: {problem.message}", hint=problem.hint)
    if document is None or document.kind != "finding" or document.id.value != ticket_id:
        raise BadDataError(f"the ticket cannot be written: it would not be read as {ticket_id}")
    if squeeze(document.title.value) != squeeze(draft.title):
        raise BadDataError(
            f"the title would be read as {document.title.value!r}", hint="write it without markup"
        )
    return texts
