"""``tickets report --format``: every format from the command line, the same bytes each time."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository

from finding_tickets.cli.main import run

MACHINES = ("json", "csv", "sarif")


def ids(output_format: str, text: str) -> list[str]:
    """The documents that a report in some format is about."""
    if output_format == "json":
        return [item["id"] for item in json.loads(text)["data"]]
    if output_format == "csv":
        return [row["id"] for row in csv.DictReader(io.StringIO(text, newline=""))]
    return [result["properties"]["ticket"] for result in json.loads(text)["runs"][0]["results"]]


@pytest.mark.parametrize("output_format", MACHINES)
def test_a_report_on_what_a_query_means(tickets: Tickets, repository: Repository, output_format: str) -> None:
    """Each format has the documents of the query, in their order."""
    for number in (10, 2, 1):
        repository.ticket(f"A-{number}", status="open")
    repository.ticket("A-3", status="fixed")
    ran = tickets("report", "status:open", "--format", output_format)
    assert (0, ["A-1", "A-2", "A-10"]) == (ran.code, ids(output_format, ran.out))


@pytest.mark.parametrize("output_format", MACHINES)
def test_the_same_register_gives_the_same_bytes(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory, output_format: str
) -> None:
    """Neither the folder, nor the hour, nor what was read before has a part in it."""
    repository.ticket("A-1", status="open", title="It waits | für immer")
    there = tmp_path_factory.mktemp("other") / "copy"
    shutil.copytree(repository.root, there)
    made: list[bytes] = []
    for root in (repository.root, repository.root, there):
        file = tmp_path_factory.mktemp("out") / "report"
        arguments = ["report", "--root", str(root), "--format", output_format, "--output", str(file)]
        assert 0 == run(arguments)
        made.append(file.read_bytes())
    assert 1 == len(set(made))
    assert str(repository.root).encode() not in made[0]


def test_a_summary_is_added_to_its_file(tickets: Tickets, repository: Repository, tmp_path: Path) -> None:
    """What the file has stays, and counts against what GitHub takes; the report itself is printed as well."""
    repository.ticket("A-1", status="open")
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    ran = tickets("report", "--format", "csv", "--summary", str(file))
    assert (0, ["A-1"]) == (ran.code, ids("csv", ran.out))
    assert file.read_text().startswith("before\n## Tickets: 1\n")
    assert "| A-1 | P2 |" in file.read_text()
    file.write_text("x" * (1024**2 - 10))
    tickets("report", "--format", "csv", "--summary", str(file))
    assert 1024**2 - 10 == file.stat().st_size
