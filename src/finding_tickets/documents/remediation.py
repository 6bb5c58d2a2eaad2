"""The Remediation of a ticket: its YAML as nodes that know their line, what it says, entries added to it."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import islice, product
from typing import TYPE_CHECKING, Any

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
from finding_tickets.model.ticket import Problem, Remediation, Span
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
    from yaml.nodes import Node

_LINE_END = re.compile(r"\r\n|\r|\n")
# A remediation nests four deep; far more is no remediation, and would exhaust the stack.
_DEEPEST = 50
_TEXT_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float"))
_KINDS = {"mapping": "a mapping", "sequence": "a list", "scalar": "a single value"}
_QUOTE = "quote a value that starts with one of > | * & ! % @ { [, or that contains ': ' or ' #'"
_INDENT = "indent with spaces: here is a tab"
_OF_RUN = ("run", "sweep", "within", "place", "moved", "differs")
_KEYS = ("verifier", *_OF_RUN, "variants", "decision", "claims", "unmeasured", "checklist")
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_NO_RUN = {
    SAME_RESULT: "a run returns no result to compare",
    "graph_breaks": "what runs by itself is not traced",
}
_CLAIM_KEYS = ("is", "at", "expect", "why")
# What YAML reads as this very text, within braces too.
_PLAIN = re.compile(r"\w(?:[\w.+*/()-]|:(?=\w)| (?=[\w.+*/()-]))*")
_REVISION = re.compile(r"(?P<module>)(?P<function>)@(?P<revision>[^\s@]+)")
_REFERENCE = re.compile(r"(?P<module>[^:@\s]+):(?P<function>[A-Za-z_][\w.]*)(?:@(?P<revision>[^\s@]+))?")

Entries = Mapping[str, Any]
"""What is to be added: texts and further mappings by their keys."""


class YamlText:
    """A YAML text within a file, and the line of the file on which it starts."""

    def __init__(self, source: Source, text: str, first_line: int) -> None:
        self.source = source
        self.text = text
        self.first_line = first_line
        self.line_ends = [match.end() for match in _LINE_END.finditer(text)]

    def place(self, index: int) -> tuple[int, int]:
        """The line of the file that holds the character at ``index``, and its column if nothing is indented.

        YAML's own line numbers will not do: for it, other characters than Markdown's end a line too.
        """
        index = min(index, len(self.text.rstrip()))
        before = bisect_right(self.line_ends, index)
        return self.first_line + before, index - (self.line_ends[before - 1] if before else 0) + 1

    def root(self) -> YamlNode | None:
        """The whole text as a node; None where it says nothing or is no YAML."""
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        depth = 0
        try:
            # Composing a text that nests too deeply would exhaust the stack; its events can be counted.
            for event in yaml.parse(self.text, Loader=loader):
                depth += isinstance(event, yaml.CollectionStartEvent)
                depth -= isinstance(event, yaml.CollectionEndEvent)
                if depth > _DEEPEST:
                    mark = event.start_mark
                    raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=mark)  # type: ignore[arg-type] # the C loader has marks of its own
            root = yaml.compose(self.text, Loader=loader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            index = mark.index if mark else getattr(error, "position", 0)
            reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
            hint = _INDENT if self.text[index : index + 1] == "\t" else _QUOTE
            place = self.place(index)
            self.source.report("remediation-yaml", place, f"not YAML: {reason}", hint, Level.ERROR)
            return None
        return YamlNode(self, root) if root is not None else None


class YamlNode:
    """A node of a YAML text: a ``mapping``, ``sequence`` or ``scalar``. It reports what it does not have."""

    def __init__(self, origin: YamlText, node: Node) -> None:
        self.origin = origin
        self.node = node
        self.kind = type(node).__name__.removesuffix("Node").lower()
        self.place = origin.place(node.start_mark.index)

    def wrong(self, rule: str, message: str, hint: str | None = None) -> None:
        """Report an error where the node starts."""
        self.origin.source.report(f"remediation-{rule}", self.place, message, hint, Level.ERROR)

    def mapping(
        self, what: str, allowed: Collection[str] | None = None, needed: Collection[str] = ()
    ) -> YamlMapping:
        """The values of a mapping by their keys, each of which is given once, and is ``allowed``."""
        found = YamlMapping()
        for key, value in self.node.value if self._is("mapping", what) else ():
            label = YamlNode(self.origin, key)
            name = label.text("a key")
            if name in found:
                label.wrong("twice", f"{name!r} is given twice in {what}")
            elif name is not None and allowed is not None and name not in allowed:
                label.wrong("key", f"{what} has no {name!r}", f"known are {', '.join(allowed)}")
            elif name is not None:
                found[name] = YamlNode(self.origin, value)
        for key in needed if self.kind == "mapping" else ():
            if key not in found:
                self.wrong("missing", f"{what} needs {key!r}")
        return found

    def sequence(self, what: str) -> list[YamlNode]:
        """The items of a list."""
        items = self.node.value if self._is("sequence", what) else ()
        return [YamlNode(self.origin, item) for item in items]

    def text(self, what: str) -> str | None:
        """A string or a number, as it is written."""
        if self.kind == "scalar" and self.node.tag in _TEXT_TAGS and self.node.value.strip():
            return str(self.node.value).strip()
        self.wrong("type", f"{what} must be a text or a number, not {self._shown()}")
        return None

    def _is(self, kind: str, what: str) -> bool:
        if self.kind != kind:
            self.wrong("type", f"{what} must be {_KINDS[kind]}, not {self._shown()}")
        return self.kind == kind

    def _shown(self) -> str:
        if self.kind != "scalar":
            return _KINDS[self.kind]
        return repr(self.node.value) if self.node.value else "nothing"


class YamlMapping(dict[str, YamlNode]):
    """Nodes by their keys; of a key that need not be there, nothing is read."""

    def text(self, key: str) -> str | None:
        """The text of a key."""
        return self[key].text(key) if key in self else None

    def choice(self, key: str, *words: str) -> str | None:
        """One of several words, by default the first; None where it is another one."""
        text = self.text(key) if key in self else words[0]
        if text is not None and text not in words:
            self[key].wrong("type", f"{key} is {text!r}", f"one of {', '.join(words)}")
        return text if text in words else None

    def items_of(self, key: str) -> list[YamlNode]:
        """The items of a list."""
        return self[key].sequence(key) if key in self else []

    def mapping(self, key: str) -> YamlMapping:
        """The values of a mapping within."""
        return self[key].mapping(key) if key in self else YamlMapping()


def read_remediation(part: DocumentPart) -> Values | None:
    """The remediation of a ticket; what is wrong in it is reported as an error and left out."""
    source, blocks = part.source, yaml_blocks(part)
    if len(blocks) != 1:
        message = f"the Remediation section needs exactly one yaml block; it has {len(blocks)}"
        line = source.line(blocks[1].start if blocks else part.start)
        hint = None if blocks else "its fence begins with ```yaml"
        source.report("remediation-block", (line, 1), message, hint, Level.ERROR)
        return None
    root = YamlText(source, blocks[0].code, source.line(blocks[0].first)).root()
    return _remediation(root, source, source.span(blocks[0].start, blocks[0].end))


def yaml_blocks(part: DocumentPart) -> list[Block]:
    """The fences of a Remediation section that hold YAML; there should be one."""
    fences = [block for block in part.blocks if block.kind == "CodeBlock"]
    return [block for block in fences if block.info.lower().split()[:1] in (["yaml"], ["yml"])]


def read_sidecar(data: bytes, path: str) -> tuple[Remediation, tuple[Problem, ...]]:
    """What a file of YAML says in place of a Remediation section, and what is wrong in it."""
    source = Source(path, data, Vocabulary())
    root = YamlText(source, source.utf8_text("remediation-yaml").removeprefix("\ufeff"), 1).root()
    # An empty file beside a ticket is an accident; without an error nobody would notice it.
    if root is None and not source.problems:
        source.report("remediation-yaml", 0, "the file says nothing", level=Level.ERROR)
    values = _remediation(root, source, source.span(0, len(data)))
    problems = sorted(source.problems, key=lambda problem: problem.line)
    return Remediation.model_validate(values), tuple(problems)


def _remediation(root: YamlNode | None, source: Source, span: Span) -> Values:
    keys = root.mapping("the Remediation block", _KEYS) if root else YamlMapping()
    verifier = keys.text("verifier")
    if verifier and not inside_repository(verifier):
        keys["verifier"].wrong("path", f"{verifier} leaves the repository")
        verifier = None
    claims = list(_claims(keys))
    for claim in claims if "run" in keys else ():
        if why := _NO_RUN.get(claim["metric"]):
            message, hint = f"{claim['id']}: {why}", "write a verifier: docs/verifiers.md"
            source.report("remediation-run", (claim["line"], 1), message, hint, Level.ERROR)
    unmeasured = []
    for entry in keys.items_of("unmeasured"):
        own = entry.mapping("an unmeasured claim", ("claim", "why"), ("claim", "why"))
        number, reason = own.text("claim"), own.text("why")
        if number and reason:
            unmeasured.append({"claim": number, "why": reason, "line": entry.place[0]})
    return {
        "verifier": verifier,
        **_run(keys),
        "variants": _variants(keys),
        "decision": keys.choice("decision", "fix", "keep") or "fix",
        "claims": claims,
        "unmeasured": unmeasured,
        "checklist": list(_answers(keys)),
        "path": source.path,
        "span": span,
        "digest": sha256(source.data[span.start : span.end]).hexdigest(),
    }


def _variants(keys: YamlMapping) -> Values:
    """Where each variant lives; of what is run, the code as found is that of the work tree by default."""
    has_run, variants = "run" in keys, dict[str, Values]()
    form, hint = _REFERENCE, "write path.py:function or package.module:function, with @REV for a git revision"
    if has_run:
        form, hint = _REVISION, 'write "@COMMIT", or "@worktree" for the code as it is now, both in quotes'
    if has_run and "variants" not in keys:
        at = {"module": "", "function": "", "line": keys["run"].place[0]}
        variants["found"] = {"raw": f"@{WORKTREE}", "revision": None, **at}
    for name, node in keys.mapping("variants").items():
        raw = node.text("a variant")
        match = form.fullmatch(raw) if raw and raw.isprintable() else None
        if match and not inside_repository(match["module"] or ""):
            node.wrong("path", f"{match['module']} leaves the repository")
        elif match:
            variants[name] = {"raw": raw, "line": node.place[0], **match.groupdict()}
            if match["revision"] == WORKTREE and has_run:
                variants[name]["revision"] = None
        elif raw is not None:
            what = "is no revision of what is run" if has_run else "does not name a function"
            node.wrong("variant", f"{raw!r} {what}", hint)
    return variants


def _run(keys: YamlMapping) -> Values:
    """What is run instead of a verifier, its sweep, the function and the statement that it is counted in."""
    found = Values(run=None, sweep=[], within=None, place=None, moved=[], differs=[])
    if "run" not in keys or "verifier" in keys:
        for key in _OF_RUN:
            if key in keys:
                message = f"a verifier and {key}: one of them" if "verifier" in keys else f"{key} needs run"
                keys[key].wrong("run", message, "a verifier has a sweep of its own")
        return found
    raw, within = keys["run"].text("run"), keys.text("within")
    found["sweep"] = _points(keys["sweep"]) if "sweep" in keys else []
    found["differs"] = [name for node in keys.items_of("differs") if (name := node.text("differs"))]
    match = _REFERENCE.fullmatch(within) if within else None
    if match and not match["revision"] and inside_repository(match["module"]):
        found["within"] = within
    elif within:
        keys["within"].wrong("run", f"within: {within!r} does not name a function", "write path.py:function")
    if "place" in keys:
        found["place"] = _statement(keys["place"], "place")
    found["moved"] = [each for node in keys.items_of("moved") if (each := _statement(node, "moved"))]
    if "moved" in keys and "place" not in keys:
        keys["moved"].wrong("run", "moved needs place", "they wait in the stead of that statement")
    if raw:
        # Few tickets have one.
        from finding_tickets.documents.run_command import WrongCommandError, parse_command

        try:
            variables = found["sweep"][0] if found["sweep"] else ()
            found["run"] = {**parse_command(raw, variables), "line": keys["run"].place[0]}
        except WrongCommandError as error:
            keys["run"].wrong("run", error.message, error.hint)
    return found


def _statement(node: YamlNode, what: str) -> Values | None:
    """Read which statement is meant; None where that is not understood."""
    keys = node.mapping(what, ("file", "function", "code", "occurrence"), ("file", "code"))
    file, code, function = keys.text("file"), keys.text("code"), keys.text("function")
    occurrence = _integer(keys["occurrence"], "occurrence") if "occurrence" in keys else None
    if occurrence is not None and occurrence < 1:
        keys["occurrence"].wrong("type", "occurrence counts from 1")
        return None
    if file and not inside_repository(file):
        keys["file"].wrong("path", f"{file} leaves the repository")
        return None
    if not file or not code:
        return None
    line = node.place[0]
    return {"file": file, "function": function or "", "code": code, "occurrence": occurrence, "line": line}


def _points(node: YamlNode) -> list[dict[str, int]]:
    """The points of a sweep: all combinations of the values of its variables, or those of a list."""
    points: list[dict[str, Any]] = []
    if node.kind == "sequence":
        for point in node.sequence("sweep"):
            row = point.mapping("a point of the sweep")
            points.append({name: _integer(each, name) for name, each in row.items()})
    else:
        values: dict[str, list[Any]] = {}
        for name, each in node.mapping("sweep").items():
            values[name] = [_integer(value, name) for value in each.sequence(f"sweep {name}")]
        for combined in islice(product(*values.values()), MOST_POINTS + 1):
            points.append(dict(zip(values, combined, strict=True)))
    names = [*points[0]] if points else []
    wrong = [name for name in names if not name.isidentifier()]
    if any(point.keys() != points[0].keys() for point in points):
        node.wrong("run", "the points of the sweep have different variables")
    elif wrong:
        node.wrong("run", f"sweep: {wrong[0]!r} cannot be the name of a variable")
    elif not names:
        node.wrong("run", "the sweep has no point")
    elif len(points) > MOST_POINTS:
        node.wrong("run", f"the sweep has more than {MOST_POINTS} points")
    else:
        # A value that is no integer was reported, and its points are left out.
        rows = dict.fromkeys(tuple(point[name] for name in names) for point in points)
        return [dict(zip(names, row, strict=True)) for row in rows if None not in row]
    return []


def _integer(node: YamlNode, name: str) -> int | None:
    text = node.text(f"a value of {name}")
    if text is not None and not _INTEGER.fullmatch(text):
        node.wrong("type", f"a value of {name} must be an integer, not {text!r}")
    return int(text) if text and _INTEGER.fullmatch(text) else None


def _claims(keys: YamlMapping) -> Iterator[Values]:
    """Every claim, in the order of the block; what is wrong is reported and left out."""
    for variant, metrics in keys.mapping("claims").items():
        if variant == ELSEWHERE:
            if claim := _elsewhere(keys, metrics):
                yield claim
            continue
        for metric, node in metrics.mapping(f"claims about {variant}").items():
            name = f"{variant}.{metric}"
            several = node.kind == "sequence"
            values = node.sequence(name) if several else [node]
            if not values:
                node.wrong("type", f"{name} claims nothing")
            for number, value in enumerate(values):
                claim_id = f"{name}[{number}]" if several else name
                if claim := _claim(claim_id, metric, value):
                    own = {"id": claim_id, "variant": variant, "metric": metric, "line": value.place[0]}
                    yield own | claim


def _elsewhere(keys: YamlMapping, node: YamlNode) -> Values | None:
    """Read the claim that only the place waits otherwise than at the code as found."""
    if "place" not in keys:
        node.wrong("run", f"{ELSEWHERE} needs place", "it is about all statements but that one")
    elif (text := node.text(ELSEWHERE)) == NO_NEW_WAITS:
        own = {"id": ELSEWHERE, "variant": "fix", "metric": ELSEWHERE, "line": node.place[0]}
        no_condition: Values = {"at": {}, "expect": "holds", "why": None, "tolerance": None}
        return {**own, "value": NO_NEW_WAITS, **no_condition}
    elif text is not None:
        node.wrong("type", f"{ELSEWHERE} is not understood", f"write {ELSEWHERE}: {NO_NEW_WAITS}")
    return None


def _claim(name: str, metric: str, node: YamlNode) -> Values | None:
    """What one claim says, or None where it cannot be understood."""
    allowed = (*_CLAIM_KEYS, "tolerance") if metric == SAME_RESULT else _CLAIM_KEYS
    keys = node.mapping(name, allowed) if node.kind == "mapping" else YamlMapping({"is": node})
    if "is" not in keys:
        node.wrong("missing", f"{name} needs 'is', the value that is claimed")
        return None
    value, expect, why = keys["is"].text(name), keys.choice("expect", "holds", "refuted"), keys.text("why")
    if expect == "refuted" and why is None:
        node.wrong("why", f"{name} is expected to be refuted and needs 'why'")
    if value is None or expect is None:
        return None
    tolerance, written = None, keys.text("tolerance")
    if written is not None:
        with suppress(ValueError):
            tolerance = float(written)
        # "nan" compares with nothing, and is refused too.
        if tolerance is None or not 0 <= tolerance < float("inf"):
            keys["tolerance"].wrong("type", f"the tolerance {written!r} is not a number of at least 0")
            tolerance = None
    conditions = keys.mapping("at").items()
    at = {variable: condition.text(f"the condition on {variable}") for variable, condition in conditions}
    stated = {variable: text for variable, text in at.items() if text is not None}
    return {"value": value, "at": stated, "expect": expect, "why": why, "tolerance": tolerance}


def _answers(keys: YamlMapping) -> Iterator[Values]:
    """What answers each item of the checklist."""
    for entry in keys.items_of("checklist"):
        own = entry.mapping("an answer to the checklist", ("item", "claims", "why"), ("item",))
        claims = [text for each in own.items_of("claims") if (text := each.text("the ID of a claim"))]
        item, why = own.text("item"), own.text("why")
        if entry.kind == "mapping" and not claims and not why:
            entry.wrong("answer", "an answer to the checklist names claims, or why there are none")
        elif item:
            yield {"item": item, "claims": claims, "why": why, "line": entry.place[0]}


# Entries added to the YAML, in the ticket or in a file beside it; what is there stays.


def add_entries(yaml: YamlText, entries: Entries) -> Splices:
    """Add to a mapping of YAML what it does not have, in the style that each of its mappings has.

    A text that is there is replaced where it is another one.

    Raises:
        ValueError: The text is no mapping.
    """
    root = yaml.root()
    if root is None or root.kind != "mapping":
        raise ValueError("the Remediation says nothing yet")
    return [_splice(yaml, *each) for each in _changes(root.node, yaml.text, entries)]


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
    """Where the text of a node ends, without the blank lines that YAML counts as part of it."""
    if isinstance(node.value, list) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last, text)
    return len(text[: node.end_mark.index].rstrip())


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_flow(each)}' for key, each in value.items())}}}"
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
    return Splice(at, at + len(yaml.text[index:until].encode()), added.encode().replace(b"\n", begin))
