"""Read the Remediation of a ticket, report each mistake on its line, and add entries to it."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import reduce
from hashlib import sha256
from itertools import islice, product
from operator import getitem
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from finding_tickets.documents.sections import DocumentPart
from finding_tickets.documents.source import (
    BYTE_ORDER_MARK,
    Block,
    Source,
    Splice,
    Splices,
    Values,
    line_at,
    line_end,
)
from finding_tickets.ground.files import inside_repository
from finding_tickets.model.ticket import (
    Answer,
    Problem,
    Record,
    Remediation,
    Span,
    StatementRef,
    Unmeasured,
)
from finding_tickets.model.vocabulary import (
    ELSEWHERE,
    MOST_POINTS,
    NO_NEW_WAITS,
    SAME_RESULT,
    WORKTREE,
    Level,
    Vocabulary,
)

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, ScalarNode, SequenceNode

    Node = ScalarNode | SequenceNode | MappingNode

_LINE_END = re.compile(r"\r\n|\r|\n")
# A remediation nests four deep; far more is no remediation, and would exhaust the stack.
_DEEPEST = 50
_TEXT_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float"))
_QUOTE = "quote a value that starts with one of > | * & ! % @ { [, or that contains ': ' or ' #'"
_INDENT = "indent with spaces: here is a tab"
_OF_RUN = ("run", "sweep", "within", "place", "moved", "differs", "data")
_NO_RUN = {
    SAME_RESULT: "a run returns no result to compare",
    "graph_breaks": "what runs by itself is not traced",
}
# What YAML reads as this very text, within braces too.
_PLAIN = re.compile(r"\w(?:[\w.+*/()-]|:(?=\w)| (?=[\w.+*/()-]))*")
_REVISION = re.compile(r"(?P<module>)(?P<function>)@(?P<revision>[^\s@]+)")
_REFERENCE = re.compile(
    r"(?P<module>[^:@\s]+):(?P<function>[A-Za-z_][\w.]*)(?:@(?P<revision>[^\s@]+))?"
)

# What is to be added: texts and further mappings by their keys.
Entries = Mapping[str, Any]
# The keys and indices that lead to a value.
Location = tuple[str | int, ...]


# The block as it is written. A text is a string or a number; any other single value is read as False.


def _inside(path: str) -> str:
    if not inside_repository(path):
        raise PydanticCustomError(
            "path", "{path} leaves the repository", {"path": path}
        )
    return path


def _inside_statement(statement: StatementRef) -> StatementRef:
    _inside(statement.file)
    return statement


def _placed(value: object) -> object:
    """Return a mapping with its line, as records have it."""
    return {**value, "line": value.line} if isinstance(value, _Mapping) else value


def _listed(value: object) -> list[object]:
    """Return the values of a metric as a list of mappings."""
    values = value if isinstance(value, list) else [value]
    if not values:
        raise PydanticCustomError("empty", "this claims nothing")
    return [each if isinstance(each, dict) else {"is": each} for each in values]


def _with_elsewhere(claims: object) -> object:
    """Return claims in which the one about other statements has the form of the others."""
    if isinstance(claims, dict) and ELSEWHERE in claims:
        return {**claims, ELSEWHERE: {ELSEWHERE: claims[ELSEWHERE]}}
    return claims


class _Mapping(dict[str, Any]):
    """A mapping of the block, and its line."""

    line = 0


PathText = Annotated[str, AfterValidator(_inside)]
Integer = Annotated[int, BeforeValidator(str), Field(gt=-(10**18), lt=10**18)]
Statement = Annotated[
    StatementRef, BeforeValidator(_placed), AfterValidator(_inside_statement)
]


class _Claim(Record):
    value: str = Field(alias="is")
    at: dict[str, str] = Field({})
    expect: Literal["holds", "refuted"] = "holds"
    why: str | None = None
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _needs_why(self) -> _Claim:
        if self.expect == "refuted" and self.why is None:
            raise PydanticCustomError(
                "why", "what is expected to be refuted needs 'why'"
            )
        return self


_Metrics = dict[str, Annotated[tuple[_Claim, ...], BeforeValidator(_listed)]]
_Combined = Annotated[dict[str, tuple[Integer, ...]], Tag("_Mapping")]
_Points = Annotated[tuple[dict[str, Integer], ...], Tag("list")]


class _Block(Record):
    verifier: PathText | None = None
    run: str | None = None
    sweep: Annotated[
        _Combined | _Points, Discriminator(lambda value: type(value).__name__)
    ] = Field({})
    within: str | None = None
    place: Statement | None = None
    moved: tuple[Statement, ...] = ()
    differs: tuple[str, ...] = ()
    data: tuple[PathText, ...] = ()
    variants: dict[str, str] = Field({})
    decision: Literal["fix", "keep"] = "fix"
    claims: Annotated[dict[str, _Metrics], BeforeValidator(_with_elsewhere)] = Field({})
    unmeasured: tuple[Annotated[Unmeasured, BeforeValidator(_placed)], ...] = ()
    checklist: tuple[Annotated[Answer, BeforeValidator(_placed)], ...] = ()


# The depth at which a value with a mistake in it is left out, where that is not 2.
_LEFT_OUT = {"claims": 3, "sweep": 1, "place": 1}
# The rules of lint by the types of pydantic's errors; all others are of the rule for types.
RULES_OF_ERRORS = {
    "extra_forbidden": "key",
    "missing": "missing",
    "string_type": "type",
    "path": "path",
    "why": "why",
    "answer": "answer",
}
_EXPECTED = {
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "tuple_type": "a list",
}
_EXPECTED |= {"string_type": "a text or a number", "int_parsing": "an integer"}


class YamlText:
    """A YAML text within a file, and the line of the file on which it starts."""

    def __init__(self, source: Source, text: str, first_line: int) -> None:
        self.source = source
        self.text = text
        self.first_line = first_line
        self.line_ends = [match.end() for match in _LINE_END.finditer(text)]
        self.nodes: dict[Location, Node] = {}
        self.keys: dict[Location, Node] = {}

    def place(self, index: int) -> tuple[int, int]:
        """Return the line of the file that holds a character, and its column if nothing is indented.

        YAML's own line numbers will not do: for it, other characters than Markdown's end a line too.
        """
        index = min(index, len(self.text.rstrip()))
        before = bisect_right(self.line_ends, index)
        return self.first_line + before, index - (
            self.line_ends[before - 1] if before else 0
        ) + 1

    def line(self, *at: str | int) -> int:
        """Return the line of a value."""
        return self.place(self.nodes[at].start_mark.index)[0]

    def root(self) -> Any:
        """Return the whole text as a node; None if it is empty, or invalid YAML, which is reported."""
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        depth = 0
        try:
            # Composing a text that nests too deeply would exhaust the stack; its events can be counted.
            for event in yaml.parse(self.text, Loader=loader):
                depth += isinstance(event, yaml.CollectionStartEvent)
                depth -= isinstance(event, yaml.CollectionEndEvent)
                # Aliases of aliases can stand for more than fits into memory.
                is_alias = isinstance(event, yaml.AliasEvent)
                if depth > _DEEPEST or is_alias:
                    problem = (
                        "an alias is not read" if is_alias else "nested too deeply"
                    )
                    raise yaml.MarkedYAMLError(
                        problem=problem,
                        # The C loader has marks of its own.
                        problem_mark=event.start_mark,  # type: ignore[arg-type]
                    )
            return yaml.compose(self.text, Loader=loader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            index = mark.index if mark else getattr(error, "position", 0)
            reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
            hint = _INDENT if self.text[index : index + 1] == "\t" else _QUOTE
            place = self.place(index)
            self.source.report(
                "remediation-yaml", place, f"not YAML: {reason}", hint, Level.ERROR
            )
            return None

    def block(self) -> _Block:
        """Return what the text says. What is wrong in it is reported and left out."""
        root = self.root()
        data = self._read(root, ()) if root else {}
        while True:
            try:
                return _Block.model_validate(data)
            except ValidationError as error:
                mistakes = {self._report(each) for each in error.errors()}
            # Behind an item that is left out, the others would move up: the last one goes first.
            for at in sorted(mistakes, reverse=True):
                if not at:
                    return _Block()
                *above, last = at
                reduce(getitem, above, data).pop(last)

    def wrong(
        self, at: Location, rule: str, message: str, hint: str | None = None
    ) -> None:
        """Report an error at a value or its key."""
        node = (self.keys if rule in ("key", "twice") else self.nodes)[at]
        place = self.place(node.start_mark.index)
        self.source.report(f"remediation-{rule}", place, message, hint, Level.ERROR)

    def _read(self, node: Node, at: Location) -> Any:
        """Return a node as mappings, lists and texts. Note where each of them stands."""
        self.nodes[at] = node
        if isinstance(node.value, str):
            text = node.value.strip()
            return text if text and node.tag in _TEXT_TAGS else False
        if node.id == "sequence":
            return [
                self._read(each, (*at, number))
                for number, each in enumerate(node.value)
            ]
        found = _Mapping()
        found.line = self.line(*at)
        for key, value in node.value:
            name = str(key.value).strip()[:100]
            self.keys[*at, name] = key
            if name in found:
                self.wrong((*at, name), "twice", f"{name!r} is given twice")
            else:
                found[name] = self._read(value, (*at, name))
        return found

    def _report(self, error: ErrorDetails) -> Location:
        """Report a mistake that was found by validation, and return what is to be left out."""
        at: Location = ()
        for key in error["loc"]:
            if (*at, key) in self.nodes:
                at = (*at, key)
        name, kind, hint = _name(at), error["type"], None
        message = f"{name}: {error['msg']}"
        if kind == "extra_forbidden":
            message = f"{_name(at[:-1])} has no {at[-1]!r}"
            hint = (
                f"known are {', '.join(_Block.model_fields)}" if len(at) == 1 else None
            )
        elif kind == "missing":
            message = f"{name} needs {error['loc'][-1]!r}"
        elif expected := _EXPECTED.get(kind) or error.get("ctx", {}).get("expected"):
            message = f"{name} must be {expected}"
        self.wrong(at, RULES_OF_ERRORS.get(kind, "type"), message, hint)
        if kind == "extra_forbidden" or not at:
            return at
        return at[: _LEFT_OUT.get(str(at[0]), 2)]


def _name(at: Location) -> str:
    """Return the name of a value in messages."""
    return ".".join(map(str, at)) or "the Remediation block"


def read_remediation(part: DocumentPart) -> Values | None:
    """Return the remediation of a ticket; what is wrong in it is reported as an error and left out."""
    source, blocks = part.source, yaml_blocks(part)
    if len(blocks) != 1:
        message = f"the Remediation section needs exactly one yaml block; it has {len(blocks)}"
        line = source.line(blocks[1].start if blocks else part.start)
        hint = None if blocks else "its fence begins with ```yaml"
        source.report("remediation-block", (line, 1), message, hint, Level.ERROR)
        return None
    text = YamlText(source, blocks[0].code, source.line(blocks[0].first))
    return _remediation(text, source.span(blocks[0].start, blocks[0].end))


def yaml_blocks(part: DocumentPart) -> list[Block]:
    """Return the fences of a Remediation section that hold YAML; there should be one."""
    fences = [block for block in part.blocks if block.kind == "CodeBlock"]
    return [
        block
        for block in fences
        if block.info.lower().split()[:1] in (["yaml"], ["yml"])
    ]


def read_sidecar(data: bytes, path: str) -> tuple[Remediation, tuple[Problem, ...]]:
    """Read what a file of YAML says in place of a Remediation section, and what is wrong in it."""
    source = Source(path, data, Vocabulary())
    text = YamlText(
        source, source.utf8_text("remediation-yaml").removeprefix("\ufeff"), 1
    )
    values = _remediation(text, source.span(0, len(data)))
    # An empty file beside a ticket is an accident; without an error nobody would notice it.
    if not text.nodes and not source.problems:
        source.report("remediation-yaml", 0, "the file says nothing", level=Level.ERROR)
    problems = sorted(source.problems, key=lambda problem: problem.line)
    return Remediation.model_validate(values), tuple(problems)


def _remediation(text: YamlText, span: Span) -> Values:
    """Return the fields of a remediation."""
    block, source = text.block(), text.source
    return {
        "verifier": block.verifier,
        **_run(block, text),
        "variants": _variants(block, text),
        "decision": block.decision,
        "claims": list(_claims(block, text)),
        "unmeasured": block.unmeasured,
        "checklist": block.checklist,
        "path": source.path,
        "span": span,
        "digest": sha256(source.data[span.start : span.end]).hexdigest(),
    }


def _variants(block: _Block, text: YamlText) -> Values:
    """Return where each variant lives; of what is run, the code as found is by default in the work tree."""
    variants: dict[str, Values] = {}
    form, what = _REFERENCE, "does not name a function"
    hint = "write path.py:function or package.module:function, with @REV for a git revision"
    if block.run:
        form, what = _REVISION, "is no revision of what is run"
        hint = (
            'write "@COMMIT", or "@worktree" for the code as it is now, both in quotes'
        )
    if block.run and not block.variants:
        at = {"module": "", "function": "", "line": text.line("run")}
        variants["found"] = {"raw": f"@{WORKTREE}", "revision": None, **at}
    for name, raw in block.variants.items():
        match = form.fullmatch(raw) if raw.isprintable() else None
        if match is None:
            text.wrong(("variants", name), "variant", f"{raw!r} {what}", hint)
        elif match["module"] and not inside_repository(match["module"]):
            text.wrong(
                ("variants", name), "path", f"{match['module']} leaves the repository"
            )
        else:
            variants[name] = {
                "raw": raw,
                "line": text.line("variants", name),
                **match.groupdict(),
            }
            if match["revision"] == WORKTREE and block.run:
                variants[name]["revision"] = None
    return variants


def _run(block: _Block, text: YamlText) -> Values:
    """Return what is run instead of a verifier, its sweep, and the function and statement that count."""
    found = Values(
        run=None, sweep=[], within=None, place=None, moved=[], differs=[], data=[]
    )
    if block.run is None or block.verifier:
        for key in [key for key in _OF_RUN if key in block.model_fields_set]:
            message = (
                f"a verifier and {key}: one of them"
                if block.verifier
                else f"{key} needs run"
            )
            text.wrong((key,), "run", message, "a verifier has a sweep of its own")
        return found
    if "sweep" in block.model_fields_set:
        found["sweep"] = _points(block, text)
    found["differs"], found["data"] = block.differs, block.data
    if block.within:
        match = _REFERENCE.fullmatch(block.within)
        if match and not match["revision"] and inside_repository(match["module"]):
            found["within"] = block.within
        else:
            message = f"within: {block.within!r} does not name a function"
            text.wrong(("within",), "run", message, "write path.py:function")
    found["place"], found["moved"] = block.place, block.moved
    if block.moved and not block.place:
        text.wrong(
            ("moved",),
            "run",
            "moved needs place",
            "they wait in the stead of that statement",
        )
    # Few tickets have one.
    from finding_tickets.documents.run_command import WrongCommandError, parse_command

    try:
        variables = found["sweep"][0] if found["sweep"] else ()
        found["run"] = {**parse_command(block.run, variables), "line": text.line("run")}
    except WrongCommandError as error:
        text.wrong(("run",), "run", error.message, error.hint)
    return found


def _points(block: _Block, text: YamlText) -> list[dict[str, int]]:
    """Return the points of a sweep: all combinations of its variables' values, or the points of a list."""
    if isinstance(block.sweep, dict):
        rows = islice(product(*block.sweep.values()), MOST_POINTS + 1)
        points = [dict(zip(block.sweep, row, strict=True)) for row in rows]
    else:
        points = list(block.sweep)
    names = [*points[0]] if points else []
    wrong = [name for name in names if not name.isidentifier()]
    message = None
    if any(point.keys() != points[0].keys() for point in points):
        message = "the points of the sweep have different variables"
    elif wrong:
        message = f"sweep: {wrong[0]!r} cannot be the name of a variable"
    elif not names:
        message = "the sweep has no point"
    elif len(points) > MOST_POINTS:
        message = f"the sweep has more than {MOST_POINTS} points"
    if message:
        text.wrong(("sweep",), "run", message)
        return []
    unique = dict.fromkeys(tuple(point[name] for name in names) for point in points)
    return [dict(zip(names, row, strict=True)) for row in unique]


def _claims(block: _Block, text: YamlText) -> Iterator[Values]:
    """Yield every claim, in the order of the block; what is wrong is reported and left out."""
    for variant, metrics in block.claims.items():
        if variant == ELSEWHERE:
            [claim] = metrics[ELSEWHERE]
            if block.place is None:
                hint = "it is about all statements but that one"
                text.wrong(
                    ("claims", ELSEWHERE), "run", f"{ELSEWHERE} needs place", hint
                )
            elif claim.value != NO_NEW_WAITS:
                hint = f"write {ELSEWHERE}: {NO_NEW_WAITS}"
                text.wrong(
                    ("claims", ELSEWHERE),
                    "type",
                    f"{ELSEWHERE} is not understood",
                    hint,
                )
            else:
                own = {"id": ELSEWHERE, "variant": "fix", "metric": ELSEWHERE}
                yield {
                    **claim.model_dump(),
                    **own,
                    "line": text.line("claims", ELSEWHERE),
                }
            continue
        for metric, several in metrics.items():
            name, at = f"{variant}.{metric}", ("claims", variant, metric)
            is_list = text.nodes[at].id == "sequence"
            for number, claim in enumerate(several):
                place = (*at, number) if is_list else at
                own = {
                    "id": f"{name}[{number}]" if is_list else name,
                    "variant": variant,
                    "metric": metric,
                }
                tolerance = claim.tolerance if metric == SAME_RESULT else None
                if claim.tolerance != tolerance:
                    text.wrong(
                        (*place, "tolerance"), "key", f"{own['id']} has no 'tolerance'"
                    )
                if block.run and metric in _NO_RUN:
                    hint = "write a verifier: docs/verifiers.md"
                    text.wrong(place, "run", f"{own['id']}: {_NO_RUN[metric]}", hint)
                yield {
                    **claim.model_dump(),
                    **own,
                    "tolerance": tolerance,
                    "line": text.line(*place),
                }


# Entries added to the YAML, in the ticket or in a file beside it; what is there stays.


def add_entries(yaml: YamlText, entries: Entries) -> Splices:
    """Add missing entries to a mapping of YAML, in the style of each of its mappings.

    A text that differs is replaced.

    Raises:
        ValueError: The text is not a mapping.
    """
    root = yaml.root()
    if root is None or root.id != "mapping":
        raise ValueError("the Remediation says nothing yet")
    return [_splice(yaml, *each) for each in _changes(root, yaml.text, entries)]


def _changes(node: Any, text: str, entries: Entries) -> Iterator[tuple[int, int, str]]:
    """From where to where the text is replaced, and by what; a new line begins with a line feed."""
    there = {key.value: value for key, value in node.value}
    new = []
    for key, value in entries.items():
        own = there.get(key)
        if own is None:
            new.append(f"{key}: {_flow(value)}")
        elif own.value == value:
            continue
        elif isinstance(value, str):
            yield own.start_mark.index, _end(own, text), _flow(value)
        elif isinstance(own.value, list) and isinstance(value, Mapping):
            yield from _changes(own, text, value)
        elif isinstance(own.value, list):
            mark = "" if own.flow_style else "- "
            yield from _added(own, text, [mark + _flow(each) for each in value])
    yield from _added(node, text, new)


def _added(node: Any, text: str, new: list[str]) -> Iterator[tuple[int, int, str]]:
    """Add items to a mapping or a list."""
    if new and node.flow_style:
        at = len(text[: node.end_mark.index - 1].rstrip(", \t\r\n"))
        yield at, at, (", " if node.value else "") + ", ".join(new)
    elif new:
        # A comment behind the last value stays there.
        at = _end(node, text)
        at += len(re.split(r"[\r\n]", text[at:], maxsplit=1)[0])
        yield at, at, "".join(f"\n{' ' * node.start_mark.column}{line}" for line in new)


def _end(node: Any, text: str) -> int:
    """Return the end of a node's text, without the blank lines that YAML counts as part of it."""
    if isinstance(node.value, list) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last, text)
    return len(text[: node.end_mark.index].rstrip())


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return (
            f"{{{', '.join(f'{key}: {_flow(each)}' for key, each in value.items())}}}"
        )
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return str(value) if _PLAIN.fullmatch(str(value)) else json.dumps(str(value))


def _splice(yaml: YamlText, index: int, until: int, added: str) -> Splice:
    """A change of the YAML, within one line, as one of the file, whose lines may begin with more."""
    data, number = yaml.source.data, bisect_right(yaml.line_ends, index)
    start = yaml.line_ends[number - 1] if number else 0
    own = re.split(r"[\r\n]", yaml.text[start:], maxsplit=1)[0].encode()
    line = line_at(data, yaml.source.line_starts[yaml.first_line - 1 + number])
    prefix = data[line.start : max(line.start, line.end - len(own))]
    at = line.start + len(prefix) + len(yaml.text[start:index].encode())
    begin = line_end(data, line.start) + prefix.removeprefix(BYTE_ORDER_MARK)
    return Splice(
        at,
        at + len(yaml.text[index:until].encode()),
        added.encode().replace(b"\n", begin),
    )
