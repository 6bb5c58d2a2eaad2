"""docs/json.md says what the commands print and read."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli.conftest import Tickets
from tests.conftest import Repository

from finding_tickets.model.ticket import Record
from finding_tickets.model.verification import (
    ClaimResult,
    NotMeasured,
    Sample,
    SiteLaw,
    VariantResult,
    Verification,
)
from finding_tickets.register.new import Draft
from finding_tickets.report.probe import probe_item
from finding_tickets.verify.probing import Probed, ProbedCost, ProbedSite

PAGE = (Path(__file__).parents[2] / "docs/json.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text below a heading of the page."""
    return re.split(r"\n## ", PAGE.partition(f"\n## {title}\n")[2])[0]


def test_the_keys_of_a_list_item(tickets: Tickets, repository: Repository) -> None:
    """The table has every key of an item and no other."""
    repository.ticket()
    (item,) = tickets("list", "--format", "json").data
    cells = re.findall(r"^\| (`.*?) \|", section("ticket-list"), re.MULTILINE)
    assert set(item) == {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_the_keys_of_a_verification() -> None:
    """Each field of a verification and of the records within is named."""
    records: list[type[Record]] = [Verification, VariantResult, Sample, SiteLaw, ClaimResult, NotMeasured]
    fields = [name for record in records for name, field in record.model_fields.items() if not field.exclude]
    assert [] == [name for name in fields if f"`{name}`" not in section("verification")]


def test_the_draft_of_the_page_makes_a_ticket(tickets: Tickets, repository: Repository) -> None:
    """The example is accepted, and with the keys named below it is all that a draft can have."""
    text = section("What `tickets new --from` reads")
    example = re.split(r"```(?:json)?\n", text)[1]
    named = re.findall(r"`(\w+)`", text.rpartition("```")[2])
    assert set(Draft.model_fields) == {*json.loads(example), *named}
    assert (
        "tickets/B7-PT-01.md\n" == tickets("new", "--from", str(repository.write("draft.json", example))).out
    )


def test_the_keys_of_a_graph(tickets: Tickets, repository: Repository) -> None:
    """The table has every key of a graph, and beside it those of its nodes and edges."""
    repository.ticket(more="## Related Findings\n\n- B1-PT-02: same\n")
    (graph,) = tickets("graph", "--format", "json").data
    text = section("ticket-graph")
    assert set(graph) == set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE))
    assert [] == [
        name for item in (graph["nodes"][0], graph["edges"][0]) for name in item if f"`{name}`" not in text
    ]


def named(title: str) -> set[str]:
    """All keys that a section names."""
    return set(re.findall(r"`(\w+)`", section(title)))


def test_the_keys_of_an_init(tickets: Tickets) -> None:
    """Every key of the item, and of the objects within, is named."""
    (item,) = tickets("init", "--dry-run", "--format", "json").data
    assert {*item, *item["folders"][0], "series"} <= named("init")


def test_the_keys_of_an_import(tickets: Tickets, repository: Repository) -> None:
    """The table has every key of an item and no other."""
    log = repository.write("a.sarif", '{"version": "2.1.0", "runs": [{"results": [{}]}]}')
    (item,) = tickets("import", str(log), "--format", "json").data
    cells = re.findall(r"^\| (`.*?) \|", section("import"), re.MULTILINE)
    assert set(item) == {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_the_keys_of_a_probe() -> None:
    """Every key of the item, of a site and of a cost is named."""
    cost = ProbedCost((1,))
    probed = Probed(
        target="a:f",
        kind="function",
        meter="simulated",
        torch="2.13.0",
        device="h200-cuda13",
        points=({"run": 1},),
        metrics={"syncs": cost},
        sites=(ProbedSite("a.py", 1, "f", "stream_syncs", "x.item()", cost),),
        errors=(),
        not_measured=(),
        unknown=(),
        approximate=(),
        printed=0,
        function="a.py:f",
        files=(),
    )
    item = probe_item(probed)
    assert {*item, "draft", *item["sites"][0], *item["metrics"]["syncs"]} <= named("probe")
