"""Survey a repository for tickets, and propose a configuration that fits them.

A document is a ticket by its shape: by what it states of itself, however that is written. The name of its
file decides only where little else does.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from finding_tickets.documents.metadata import (
    FILED,
    LABELS,
    NUMBERED_TITLE,
    beginnings,
    file_name,
    is_finding_title,
    word_in,
)
from finding_tickets.documents.reading import Document, read_document
from finding_tickets.documents.source import plain
from finding_tickets.ground.git import FOREIGN_FOLDERS, repository_files
from finding_tickets.model.ticket import Field, Ticket
from finding_tickets.model.vocabulary import (
    ID_PATTERN,
    SUGGESTED,
    UNSETTLED,
    Vocabulary,
    squeeze,
    word_for,
)
from finding_tickets.register.config import config_file_of, read_config
from finding_tickets.register.entries import natural
from finding_tickets.register.files import File, markdown_files, read_file
from finding_tickets.register.new import numbered

MOST_SHAPES = 4
TEMPLATE, BY_NAME, SHAPELESS = (
    "a template",
    "a README or the like",
    "without a ticket's shape",
)

_UNFIT, _NO_ID, _UNKNOWN = "id-form", "id-missing", "unknown-word"
_USUAL_NAMES = (
    "agents changelog claude contributing gemini index license "
    "readme roadmap security summary todo"
)
_NAMES = frozenset(_USUAL_NAMES.split())
# What calls a document a finding: its ID, the label of the ID, or its type.
_ID_LABELS = frozenset(["ticketid", "findingid", "bugid", "issueid", "number"])
_CALLED = re.compile(
    r"\b(?:bug|debt|defect|finding|issue|vulnerability)s?\b", re.IGNORECASE
)
_FINDING_SERIES = frozenset(
    ["BUG", "DEFECT", "F", "FINDING", "ISSUE", "TICKET", "VULN"]
)
# What a template leaves to be filled in: a choice of words, a mark, letters where an ID has digits.
_CHOICE = re.compile(
    r"\w[^\w|]*\|[^\w|]*\w|\w`? ?/ ?`?\w[^/]*/ ?`?\w|<[^<>]*>|\{[^{}]*\}|\[[^\[\]]{2,}\]|\bTBD\b"
)
_LETTERS = re.compile(
    r"(?:.*[-_#])?(?:[XN?]+|0+|ID|NUMBER|TEMPLATE.*)|.*[<{\[].*", re.IGNORECASE
)
_NO_TITLE = re.compile(
    r"(?:short |finding |bug )?title(?: here)?|<[^<>]+>|\[[^\[\]]+\]|\{.+\}",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"<!--(?:(?!<!--|-->)[\s\S])*-->")
_ENOUGH, _FEW_VALUES, _MANY_PEERS, _LONGEST = 4, 2, 3, 40


class Wording(NamedTuple):
    """A spelling in tickets that the vocabulary lacks, the word it may mean, and how many tickets have it."""

    key: str  # that of the configuration: severities or statuses
    spelling: str
    word: str | None
    tickets: int


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The findings of a survey below ``root``."""

    root: Path
    configured: str | None  # the file that configures the register already
    registers: tuple[
        str, ...
    ]  # folders below that are registers of their own, and keep their documents
    folders: Mapping[
        str, int
    ]  # of documents and how many each holds, the one for new tickets first
    left_out: Mapping[str, str]  # the Markdown files that are no documents, and why
    exclude: tuple[str, ...]  # patterns for those of them that are in the folders
    documents: Mapping[str, int]  # how many there are of each kind
    series: Mapping[
        str, int
    ]  # how many IDs of each, as ``B7-PT`` of ``B7-PT-02``, most first
    collisions: Mapping[
        str, Sequence[str]
    ]  # the paths of the documents that share an ID
    unnamed: int  # documents without an ID; the name of the file stands in for it
    wordings: tuple[Wording, ...]
    unknown: Counter[
        str
    ]  # labels that are not understood, where a severity or status is missing
    id_pattern: str | None  # for IDs that the usual pattern does not fit
    unfit: tuple[str, ...]  # IDs that no pattern could be made for


class _Read(NamedTuple):
    """A Markdown file as it was read; ``document`` is None where nothing in it looks like one."""

    path: str
    document: Document | None
    rules: frozenset[str]  # of the problems met on the way


def survey(root: Path) -> Survey:
    """Look for documents everywhere below ``root``, but for what git ignores; nothing is changed.

    Raises:
        BadDataError: There is a configuration, and it is wrong.
    """
    configured, config = config_file_of(root), read_config(root)
    # The Markdown files of the folders that are configured, else all of the repository's own.
    folders = [root / folder for folder in config.tickets] if configured else [root]
    own = None if configured else repository_files(root)
    files = list(markdown_files(root, folders, [], largest=config.largest_file))
    above = sorted(_below(file.path for file in files).keys() - {"."})
    registers = (
        []
        if configured
        else [folder for folder in above if config_file_of(root / folder)]
    )
    files = [
        file
        for file in files
        if not config.is_excluded(file.path)
        and not any(file.path.startswith(f"{each}/") for each in registers)
        and (
            file.path in own
            if own is not None
            else FOREIGN_FOLDERS.isdisjoint(file.path.split("/"))
        )
    ]
    found = [_read(file, config.vocabulary) for file in files]
    left_out = {} if configured else _left_out(found)
    taken = {
        each.path: each.document
        for each in found
        if each.document and each.path not in left_out
    }
    counts = _below(taken)
    places = {name: counts[PurePosixPath(name).as_posix()] for name in config.tickets}
    if taken and not configured:
        places = _folders((file.path for file in files), taken)
    among = [
        path
        for path in left_out
        if taken and any(f"{each}" in places for each in PurePosixPath(path).parents)
    ]
    unfit = tuple(
        taken[each.path].id.value
        for each in found
        if _UNFIT in each.rules and each.path in taken
    )
    # The usual pattern with the forms of the IDs that it does not fit, unless these are too many.
    shapes = [] if configured else list(dict.fromkeys(map(_shape, unfit)))
    wider = (
        f"(?:{'|'.join([ID_PATTERN, *shapes])})"
        if 0 < len(shapes) <= MOST_SHAPES
        else None
    )
    numbers = Counter(
        parts.series for each in taken.values() if (parts := numbered(each.id.value))
    )
    sharing: dict[str, list[Document]] = defaultdict(list)
    for document in taken.values():
        sharing[document.id.value.casefold()].append(document)
    return Survey(
        root=root,
        configured=configured,
        registers=tuple(registers),
        folders=places,
        left_out=left_out,
        exclude=tuple(_patterns(among, taken)),
        documents=dict(Counter(document.kind for document in taken.values())),
        series=dict(
            sorted(numbers.items(), key=lambda item: (-item[1], natural(item[0])))
        ),
        collisions={
            same[0].id.value: [each.path for each in same]
            for same in sharing.values()
            if same[1:]
        },
        unnamed=sum(_NO_ID in each.rules for each in found if each.path in taken),
        unknown=_unknown_labels(found),
        wordings=() if configured else tuple(_wordings(taken.values())),
        id_pattern=wider,
        unfit=() if configured or wider else unfit,
    )


def _read(file: File, vocabulary: Vocabulary) -> _Read:
    document, problems = read_document(
        read_file(file, []) or b"", file.path, vocabulary
    )
    return _Read(file.path, document, frozenset(problem.rule for problem in problems))


def _left_out(found: Sequence[_Read]) -> dict[str, str]:
    """Return the reason for each file that is left out."""
    left_out = {each.path: why for each in found if (why := _why_not(each))}
    # What says little of itself is a ticket where nearly everything beside it is one.
    beside = Counter(_parent(each.path) for each in found)
    tickets = Counter(
        _parent(each.path)
        for each in found
        if each.document and each.path not in left_out
    )
    for each in found:
        is_finding = isinstance(each.document, Ticket)
        folder = _parent(each.path)
        among = tickets[folder] >= max(_MANY_PEERS, beside[folder] * 2 / 3)
        if is_finding and among and left_out.get(each.path) == SHAPELESS:
            del left_out[each.path]
    return left_out


def _why_not(each: _Read) -> str | None:
    """Return why a file is neither ticket nor review; None if it has the shape of one."""
    document, stem = each.document, PurePosixPath(each.path).stem
    # A number in front of its name will do in a folder of findings.
    is_numbered = FILED.search(each.path) and re.match(r"\d+[-_]", stem)
    has_id = _NO_ID not in each.rules or bool(
        is_numbered or Vocabulary().an_id.fullmatch(stem)
    )
    is_usual = squeeze(stem) in _NAMES
    is_ticket = isinstance(document, Ticket)
    # What has a number or a date is one of many.
    is_named = "template" in re.split(r"[-_. ]", stem.lower()) and not re.search(
        r"\d", stem
    )
    if is_named and (not is_ticket or not has_id):
        return TEMPLATE
    if document is None:
        return BY_NAME if is_usual else SHAPELESS
    if document.kind == "review":
        # A report of findings has no change that it is about.
        is_about_change = document.commits or document.plan
        return (
            None
            if is_about_change and (document.verdict or document.requirements)
            else SHAPELESS
        )
    if _is_template(document, has_id=has_id):
        return TEMPLATE
    ok = _is_shaped(document, has_id=has_id, is_usual=is_usual)
    return None if ok else BY_NAME if is_usual else SHAPELESS


def _is_template(ticket: Ticket, *, has_id: bool) -> bool:
    """Return whether a ticket is still to be filled in."""
    # The name of a file that has a number is one, whatever word it ends with.
    is_numbered = not has_id and re.search(r"[1-9]", ticket.id.value)
    values = [
        _COMMENT.sub("", text.raw).strip("`*_ ") for text in ticket.metadata.values()
    ]
    chosen = [each.raw for each in (ticket.severity, ticket.status) if each]
    return (
        (len(values) > _FEW_VALUES and not any(values))
        or any(_CHOICE.search(_COMMENT.sub("", raw)) for raw in chosen)
        or bool(not is_numbered and _LETTERS.fullmatch(ticket.id.value))
        or bool(_NO_TITLE.fullmatch(ticket.title.value))
    )


def _is_shaped(ticket: Ticket, *, has_id: bool, is_usual: bool) -> bool:
    """Return whether a document has the shape of a finding, by its labels and its parts."""
    stated = {squeeze(label): text.raw for label, text in ticket.metadata.items()}
    is_named = bool(file_name(ticket.path, Vocabulary()).severity)
    ranked = is_named or _is_understood(ticket.severity, "severities")
    # A plan or a telemetry record has a priority, too.
    severity = is_named or (
        ranked and not ("priority" in stated and "severity" not in stated)
    )
    status = _is_understood(ticket.status, "statuses")
    heading = next((each.title for each in ticket.sections if each.level == 1), "")
    is_filed, has_parts = (
        FILED.search(ticket.path) is not None,
        len(ticket.sections) > 1,
    )
    filed = (Vocabulary().folder_of(ticket.path) is not None) + is_filed
    called = (
        is_finding_title(heading)
        or NUMBERED_TITLE.match(heading) is not None
        or (
            has_id
            and (
                (is_filed and has_parts)
                or ticket.id.value.split("-")[0] in _FINDING_SERIES
            )
        )
        or not _ID_LABELS.isdisjoint(stated)
        or any(
            _CALLED.search(stated.get(label, ""))
            for label in ("type", "kind", "labels", "tags")
        )
    )
    fields = (
        ticket.locations,
        ticket.summary,
        ticket.recommended_fix,
        ticket.checklist,
        ticket.reviews,
    )
    others = (ticket.evidence, ticket.resolution, ticket.related, ticket.remediation)
    parts = sum(map(bool, (*fields, *others))) or has_parts
    score = 2 * severity + 2 * called + has_id + status + filed + parts
    if is_usual:
        return severity and has_id and parts > 1
    if severity or called:
        return score >= (_ENOUGH if called or status else _ENOUGH + 1)
    placed = any(place.lines or place.symbol for place in ticket.locations)
    told = bool(ticket.summary or ticket.recommended_fix)
    return has_id and (ranked or status) and placed and bool(told or filed)


def _is_understood(field: Field[Any] | None, key: str) -> bool:
    """Return whether a value is stated, and is a word or a spelling of one."""
    if field is None or not field.raw:
        return False
    return field.value is not None or _spelling(field.raw, key)[1] is not None


def _spelling(raw: str, key: str) -> tuple[str, str | None]:
    """Return the part of a value that may spell a word, with the word; the whole value and None otherwise."""
    text, words = plain(raw), SUGGESTED[key]
    word = word_in(text, words, mentioned=key == "severities")
    spellings = (*beginnings(text), *re.findall(r"\w+", text))
    return next((each for each in spellings if word_for(each, words) == word), text)[
        :_LONGEST
    ], word


def _unknown_labels(found: Iterable[_Read]) -> Counter[str]:
    """Count the labels that mean nothing, of documents in which nothing states a severity or a status."""
    unknown: Counter[str] = Counter()
    for ticket in (each.document for each in found):
        if isinstance(ticket, Ticket) and not (ticket.severity and ticket.status):
            names = [label for label, text in ticket.metadata.items() if text.raw]
            unknown.update(
                label for label in names if not LABELS.fullmatch(squeeze(label))
            )
    return unknown


def _wordings(documents: Iterable[Document]) -> Iterator[Wording]:
    """Yield the unknown severities and statuses, each with its likely meaning, the most frequent first."""
    found: dict[tuple[str, str | None, str], list[str]] = defaultdict(list)
    for ticket in (each for each in documents if isinstance(each, Ticket)):
        for key, field in (
            ("severities", ticket.severity),
            ("statuses", ticket.status),
        ):
            if field is not None and field.value is None:
                spelling, word = _spelling(field.raw, key)
                found[key, word, squeeze(spelling)].append(spelling.strip())
    for (key, word, _), spellings in sorted(
        found.items(), key=lambda item: (item[0][0], -len(item[1]))
    ):
        yield Wording(
            key, Counter(spellings).most_common(1)[0][0], word, len(spellings)
        )


def _patterns(left_out: Iterable[str], taken: Collection[str]) -> Iterator[str]:
    """Yield patterns that exclude files: whole folders, usual names and single files."""
    has_tickets, names = _below(taken), {PurePosixPath(path).name for path in taken}
    patterns = dict[str, None]()
    # A name that is no text can be written nowhere.
    for path in filter(str.isprintable, left_out):
        name = PurePosixPath(path).name
        folders = [parent.as_posix() for parent in PurePosixPath(path).parents][::-1]
        empty = next((folder for folder in folders if not has_tickets[folder]), None)
        is_usual = squeeze(PurePosixPath(path).stem) in _NAMES and name not in names
        place = path if "/" in path else f"/{path}"
        patterns[
            (f"{empty}/*" if empty else name if is_usual else place).replace("[", "[[]")
        ] = None
    return iter(patterns)


def _shape(document_id: str) -> str:
    """A pattern for IDs that are made like this one: any letters for its letters, any number for a number."""
    form = re.sub("[A-Za-z]+", "A", re.sub("[0-9]+", "0", document_id))
    return re.escape(form).replace("A", "[A-Z]+").replace("0", "[0-9]+")


def _folders(files: Iterable[str], documents: Iterable[str]) -> dict[str, int]:
    """The topmost folders in which most Markdown files are documents, or that hold documents themselves.

    The root is one only where documents lie in it. Folders of tickets that are settled come last, so that
    new tickets are not written there.
    """
    all_below, documents_below = _below(files), _below(documents)
    directly = Counter(_parent(path) for path in documents)
    # From the root downwards: below a folder that is taken, nothing else is.
    found, waiting = [], ["."]
    while waiting:
        folder = waiting.pop()
        below = [
            name for name in documents_below if name != "." and _parent(name) == folder
        ]
        most = folder != "." and 2 * documents_below[folder] > all_below[folder]
        # All of them may be in one folder below.
        if directly[folder] or (most and len(below) > 1):
            found.append(folder)
        else:
            waiting += below

    def order(folder: str) -> tuple[bool, int, str]:
        filed = Vocabulary().folder_of(f"{folder}/")
        return (
            filed is not None and filed[1] not in UNSETTLED,
            -documents_below[folder],
            folder,
        )

    return {folder: documents_below[folder] for folder in sorted(found, key=order)}


def _below(paths: Iterable[str]) -> Counter[str]:
    """Count the files below each folder."""
    return Counter(
        parent.as_posix() for path in paths for parent in PurePosixPath(path).parents
    )


def _parent(path: str) -> str:
    return PurePosixPath(path).parent.as_posix()
