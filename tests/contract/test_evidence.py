"""The evidence of our register, and that measuring again gives the same."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.conftest import ROOT, measured, recorded

if TYPE_CHECKING:
    from tests.contract.conftest import Frozen, Tool

OF_THE_TOOL = "finding-tickets"


def without_version(text: bytes) -> Any:
    """The facts of evidence without the version of the tool, and without the digest that covers it."""
    facts = json.loads(text)
    return [fact for fact in facts if fact[0] != "digest" and OF_THE_TOOL not in fact]


def test_the_files_of_evidence(frozen: Frozen) -> None:
    """Each file has the bytes it had, but for the version of the tool."""
    digests = {}
    for file in sorted((ROOT / "evidence").rglob("*.json")):
        canonical = json.dumps(without_version(file.read_bytes())).encode()
        digests[str(file.relative_to(ROOT))] = hashlib.sha256(canonical).hexdigest()
    frozen("evidence", "files", digests)


def test_no_evidence_is_stale(own: Path, tool: Tool) -> None:
    """Evidence is whole and fresh: each document has the verdict that its evidence states."""
    verdicts = {item["id"]: item["verdict"] for item in tool(own, "list", "--format", "json").data}
    stated = {
        file.parent.name: json.loads(file.read_bytes())[0][1]["verdict"]
        for file in (own / "evidence").rglob("*.json")
    }
    assert stated == verdicts


@pytest.mark.slow
@pytest.mark.usefixtures("torch_of_the_data")
def test_measuring_again_changes_no_byte(own: Path, tool: Tool, frozen: Frozen, tmp_path: Path) -> None:
    """``verify --all`` leaves the evidence as it is, and prints what ``show`` has of it, with samples."""
    root = tmp_path / "register"
    shutil.copytree(own, root)
    answer = tool(root, "verify", "--all", "--format", "json")
    assert 0 == answer.code, answer.err
    assert "" == tool.git(root, "status", "--porcelain")
    frozen("own", "measured", {item["ticket"]: recorded(item) for item in answer.data})
    samples = {}
    for item in answer.data:
        variants = measured(item)["variants"].items()
        samples[item["ticket"]] = {name: variant["samples"] for name, variant in variants}
    frozen("own", "samples", samples)
