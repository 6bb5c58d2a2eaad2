"""What is read of every document there is: field by field, problem by problem."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.conftest import digest, recorded, wordless

if TYPE_CHECKING:
    from tests.contract.conftest import Frozen, Tool

LEVELS = ("level", "rule", "line", "column", "fixable")


def ids(tool: Tool, root: Path) -> list[str]:
    """The IDs of a register, as a list prints them."""
    return tool(root, "list", "--format", "ids").out.split()


def by_field(items: list[Any]) -> dict[str, dict[str, str]]:
    """A digest for each field of each document."""
    return {item["path"]: {key: digest(value) for key, value in item.items()} for item in items}


@pytest.mark.parametrize("command", ["show", "lint", "graph"])
def test_our_register_in_json(own: Path, tool: Tool, frozen: Frozen, command: str) -> None:
    """Everything but the wording of messages is as it is frozen."""
    words = ids(tool, own) if command == "show" else []
    answer = tool(own, command, *words, "--format", "json")
    assert 0 == answer.code, answer.err
    items = answer.data
    if command == "show":
        frozen("own", "measured", {item["id"]: recorded(item.pop("verification")) for item in items})
    frozen("own", command, wordless(items))


def test_our_list_has_what_show_has(own: Path, tool: Tool) -> None:
    """An item of the list is a document as ``show`` has it, without what was done with it."""
    listed = tool(own, "list", "--format", "json").data
    shown = tool(own, "show", *ids(tool, own), "--format", "json").data
    assert listed == [{key: item[key] for key in listed[0]} for item in shown]
    assert len(listed[0]) == 17


def test_our_register_as_ids_and_csv(own: Path, tool: Tool, frozen: Frozen) -> None:
    """A list for scripts: the IDs, and the columns that are asked for."""
    columns = "id,kind,severity,status,resolution,verdict,batch,agent,path,title"
    printed = tool(own, "list", "--format", "csv", "--columns", columns).out.splitlines()
    frozen("own", "list as csv", printed)
    frozen("own", "list as ids", ids(tool, own))


def test_our_graph_as_a_drawing(own: Path, tool: Tool, frozen: Frozen) -> None:
    """The drawing of the relations has the same lines."""
    frozen("own", "graph as mermaid", tool(own, "graph", "--format", "mermaid").out.splitlines())


@pytest.mark.parametrize("command", ["list", "show"])
def test_each_field_of_each_document(shared: Path, tool: Tool, frozen: Frozen, command: str) -> None:
    """Documents that others wrote, irregular on purpose, read as they are frozen."""
    words = ids(tool, shared) if command == "show" else []
    answer = tool(shared, command, *words, "--format", "json")
    items = answer.data
    assert len(items) == len(list(shared.glob("findings/**/*.md")))
    frozen("shared", f"{command}: exit code", answer.code)
    frozen("shared", command, by_field(wordless(items)))


def test_each_problem_of_each_document(shared: Path, tool: Tool, frozen: Frozen) -> None:
    """Lint finds the same breaches at the same places: their number, and a digest of places, by rule."""
    answer = tool(shared, "lint", "--format", "json")
    frozen("shared", "lint: exit code", answer.code)
    frozen("shared", "lint", by_rule(answer.data))


def by_rule(problems: list[Any]) -> dict[str, dict[str, str]]:
    """For each document how often each rule is broken, and a digest of the places."""
    found: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for problem in problems:
        found[problem["file"]][problem["rule"]].append([problem[key] for key in LEVELS])
    return {
        file: {rule: f"{len(places)} {digest(places)}" for rule, places in rules.items()}
        for file, rules in found.items()
    }


def test_the_forms_that_are_read(forms: Path, tool: Tool, frozen: Frozen) -> None:
    """Each part of a document is read in the forms that the page of the dialect lists."""
    shown = tool(forms, "show", *ids(tool, forms), "--format", "json")
    linted = tool(forms, "lint", "--format", "json")
    frozen("forms", "exit codes", [shown.code, linted.code])
    frozen("forms", "show", {item["path"]: wordless(item) for item in shown.data})
    frozen("forms", "lint", wordless(linted.data))


def test_irregular_documents(irregular: Path, tool: Tool, frozen: Frozen) -> None:
    """Documents broken at some place read as far as before, and the same breaches are found in each."""
    listed = tool(irregular, "list", "--format", "json")
    single = [each for each, times in Counter(item["id"] for item in listed.data).items() if times == 1]
    shown = tool(irregular, "show", "--format", "json", "--", *single)
    linted = tool(irregular, "lint", "--format", "json")
    frozen("irregular", "exit codes", [listed.code, shown.code, linted.code])
    # Most of the fields of one document are those of another one: a digest of each document names it.
    frozen("irregular", "list", {item["path"]: digest(wordless(item)) for item in listed.data})
    frozen("irregular", "show", {item["path"]: digest(wordless(item)) for item in shown.data})
    frozen("irregular", "lint", by_rule(linted.data))


def test_the_graph_of_all_documents(shared: Path, tool: Tool, frozen: Frozen) -> None:
    """Nodes and edges of the relations that the documents state."""
    (graph,) = tool(shared, "graph", "--format", "json").data
    nodes = {node["id"]: digest(node) for node in graph["nodes"]}
    edges = sorted(digest(edge) for edge in graph["edges"])
    frozen("shared", "graph", {"nodes": nodes, "edges": edges})


@pytest.mark.parametrize(
    "query",
    [
        "status:open,investigating",
        "-status:open",
        "-status:open severity:P2",
        "severity:>=P1",
        "severity:<P1 OR verdict:verified",
        "severity:P0,P2 -agent:drl",
        "severity:>=P1 -status:open sort:-updated",
        "domain:simic",
        "kind:review",
        "file:*.py",
        "file:governor.py",
        "reviewed-by:drl",
        "reviewed-by:*=OBJECT",
        "related:B7-PT-03",
        "resolution:wont-fix",
        "batch:>=3 batch:<7",
        'category:"Performance bottleneck"',
        "created:2024-12",
        "created:<2025 sort:severity,-updated",
        "done:>0",
        "undone:>3 no:verifier",
        "has:resolution",
        "id:B3-*",
        "B7-PT-03 B1-PT-01",
        "title:sync",
        '"torch.cuda"',
        "synchronize",
        "sort:agent",
        "verdict:unverified",
    ],
)
def test_what_a_query_means(shared: Path, tool: Tool, frozen: Frozen, query: str) -> None:
    """A query chooses the same documents in the same order, or is refused alike."""
    answer = tool(shared, "list", "--format", "ids", query)
    found = answer.out.split()
    frozen("queries", query, [answer.code, len(found), digest(found)])
