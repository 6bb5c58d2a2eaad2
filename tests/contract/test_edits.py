"""What edits do to every document there is: which lines change, and which come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.conftest import digest, undated

if TYPE_CHECKING:
    from tests.contract.conftest import Frozen, Tool

EDITS = {
    "set free texts": ("set", "{id}", "assignee=Kim | *Lee*", "code-repository=https://example.org/x"),
    "set dates": ("set", "{id}", "created=2026-01-31", "updated=2026-02-01"),
    "tick 1": ("tick", "{id}", "1"),
    "untick 1": ("tick", "{id}", "1", "--undo"),
    "close as fixed": ("close", "{id}", "--as", "fixed"),
    "close as fixed by force": ("close", "{id}", "--as", "fixed", "--force", "--reason", "seen | by eye"),
    "close as wont-fix": ("close", "{id}", "--as", "wont-fix", "--reason", "the path runs once"),
    "close as not-a-bug": ("close", "{id}", "--as", "not-a-bug"),
    "close as duplicate": ("close", "{id}", "--as", "duplicate", "--of", "{other}"),
    "open again": ("set", "{id}", "status=open"),
}
ALIKE = {"set free texts", "untick 1"}
"""Edits that go the way of others: these are not in the quick part."""
BACK = {
    "severity": {"severity": "P4"},
    "status": {"status": "investigating"},
    "who and where": {"batch": "77", "agent": "codereview", "domain": "simic,tolaria"},
}
"""Values that are set, and then set back to what the register said of the document before."""


class Documents:
    """The documents of a register, which are as they were after each edit."""

    def __init__(self, name: str, root: Path, tool: Tool) -> None:
        self.root = root
        self.ours = name != "shared"
        self.name = f"edits-{name}"
        self.items: list[dict[str, Any]] = json.loads(tool(root, "report", "--format", "json").out)["data"]
        self.texts = {path: path.read_bytes() for path in root.rglob("*.md") if ".git" not in path.parts}

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Put every document back in the end."""
        try:
            yield
        finally:
            for path, text in self.texts.items():
                if path.read_bytes() != text:
                    path.write_bytes(text)

    def changed(self) -> dict[str, list[str]]:
        """The lines that each changed document lost and gained, with their line ends; dated TODAY."""
        found = {}
        for path, before in self.texts.items():
            now = path.read_bytes()
            if now != before:
                old, new = (
                    text.decode("utf-8", "backslashreplace").splitlines(True) for text in (before, now)
                )
                lines = list(unified_diff(old, new, n=0))[2:]
                found[str(path.relative_to(self.root))] = [undated(line) for line in lines]
        return found

    def shown(self, changes: dict[str, list[str]]) -> dict[str, Any]:
        """Changes as the data have them: whole lines of our documents, digests of others."""
        return {**changes} if self.ours else {**summary(changes)}


@pytest.fixture(scope="module", params=["own", "forms", pytest.param("shared", marks=pytest.mark.slow)])
def documents(request: pytest.FixtureRequest, tool: Tool) -> Documents:
    """Our register, a document of each form, and the documents in ../shared."""
    return Documents(request.param, request.getfixturevalue(request.param), tool)


def summary(changes: dict[str, list[str]]) -> dict[str, str]:
    """How many lines each document lost and gained, and a digest of them."""
    return {
        path: " ".join([*(f"{sign}{sum(line[0] == sign for line in lines)}" for sign in "-+"), digest(lines)])
        for path, lines in changes.items()
    }


@pytest.mark.parametrize(
    "edit", [pytest.param(name, marks=pytest.mark.slow) if name in ALIKE else name for name in EDITS]
)
def test_an_edit(documents: Documents, tool: Tool, frozen: Frozen, edit: str) -> None:
    """Each document ends with the same exit code and the same lines changed; a refusal changes none."""
    found: dict[str, Any] = {}
    findings = [item["id"] for item in documents.items if item["kind"] == "finding"]
    for item in documents.items:
        other = next(each for each in reversed(findings) if each != item["id"])
        words = [word.format(id=item["id"], other=other) for word in EDITS[edit]]
        with documents.restored():
            answer = tool(documents.root, *words)
            changes = documents.changed()
        assert not changes or answer.code == 0
        found[item["id"]] = [answer.code, documents.shown(changes)]
    frozen(documents.name, edit, found)


@pytest.mark.parametrize("values", BACK)
def test_values_that_are_set_back(documents: Documents, tool: Tool, frozen: Frozen, values: str) -> None:
    """Set to others and back, a document has the bytes it had, but where the data name what remains."""
    found: dict[str, Any] = {}
    for item in documents.items:
        old = {"domain": ",".join(item["domains"])} | {
            key: item[key] for key in (*BACK[values], "updated") if key in item
        }
        back = [
            f"{key}={old[key] or ''}" for key in (*BACK[values], "updated") if key != "updated" or old[key]
        ]
        with documents.restored():
            there = tool(
                documents.root, "set", item["id"], *(f"{key}={it}" for key, it in BACK[values].items())
            )
            changes = documents.changed()
            again = tool(documents.root, "set", item["id"], *back)
            rest = documents.changed()
        found[item["id"]] = [
            there.code,
            documents.shown(changes),
            again.code,
            documents.shown(rest) or "the same bytes",
        ]
    frozen(documents.name, f"set {values} and back", found)


def test_what_lint_fixes(documents: Documents, tool: Tool, frozen: Frozen) -> None:
    """``lint --fix`` changes the same lines of the same documents."""
    with documents.restored():
        answer = tool(documents.root, "lint", "--fix", "--format", "json")
        frozen(documents.name, "lint --fix", [answer.code, documents.shown(documents.changed())])


def test_a_dry_run_says_what_it_would_write(documents: Documents, tool: Tool) -> None:
    """The diff of --dry-run is that of the edit itself, and nothing is written."""
    for item in documents.items[:4]:
        words = ("set", item["id"], "severity=P4", "--format", "json")
        with documents.restored():
            dry = tool(documents.root, *words, "--dry-run")
            assert {} == documents.changed()
            wet = tool(documents.root, *words)
        assert dry.code == wet.code
        if dry.code == 0:
            assert [(each["path"], each["diff"], False) for each in dry.data] == [
                (each["path"], each["diff"], not each["written"]) for each in wet.data
            ]
