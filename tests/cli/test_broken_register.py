"""A register of nothing but broken documents: every command answers for each of them, and none is a bug."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from tests.documents.mutations import document

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Repository

pytestmark = pytest.mark.slow
Tickets = Callable[..., "Ran"]
DOCUMENTS = 400
IDS = re.compile(rb"A-1\b|B2-PT-07|B11-TEL-01|M-1\b|Task 3")
"""Those of the documents that are broken; here each has an ID of its own, as far as it is left."""
BAD_DATA = 4


@pytest.fixture
def broken(repository: Repository) -> list[str]:
    """The paths of the documents with the first numbers, each broken in its own way."""
    paths = [f"tickets/{number}.md" for number in range(DOCUMENTS)]
    for number, path in enumerate(paths):
        repository.write(path, IDS.sub(f"X-{number}".encode(), document(number)))
    return paths


def test_each_file_is_listed_or_explained(tickets: Tickets, broken: list[str]) -> None:
    """Of what is not in the list, lint says why; with so many broken files some data is bad."""
    ran = tickets("list", "--format", "json")
    listed = {item["path"] for item in ran.data}
    explained = {line.partition(":")[0] for line in tickets("lint").out.splitlines()}
    assert BAD_DATA == ran.code
    assert set() == set(broken) - listed - explained
    # Of five mutations one at most leaves nothing to read.
    assert len(listed) > DOCUMENTS / 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("lint",),
        ("lint", "--format", "json"),
        ("lint", "--format", "sarif"),
        ("report",),
        ("graph",),
        ("list", "syncs OR severity:>=P1 sort:severity"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("broken")
def test_commands_on_all_of_them(tickets: Tickets, arguments: tuple[str, ...]) -> None:
    """Bad data is said to be bad data; nothing raises, whatever was read."""
    ran = tickets(*arguments)
    assert (BAD_DATA, False) == (ran.code, "bug in tickets" in ran.err)
    assert ran.out


def test_each_is_shown(tickets: Tickets, broken: list[str]) -> None:
    """The page of every document that has an ID of its own can be made."""
    ids = [item["id"] for item in tickets("list", "--format", "json").data]
    single = [name for name in ids if ids.count(name) == 1 and not name.startswith("-")]
    ran = tickets("show", *single)
    pages = [line for line in ran.out.splitlines() if re.search(r"(?:^| · )tickets/\d+\.md$", line)]
    assert (BAD_DATA, len(single)) == (ran.code, len(pages))
    assert len(single) > len(broken) / 2
