"""Reports for machines on real registers: this repository's own, and tickets as people file them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from jsonschema import Draft4Validator, Draft202012Validator

from finding_tickets.cli.main import run

ROOT = Path(__file__).parents[2]
CORPUS = ROOT.parent / "shared/corpus"
SARIF = ROOT.parent / "shared/schemas/sarif-schema-2.1.0.json"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this checkout")


@pytest.fixture(params=[ROOT, pytest.param(CORPUS, marks=needs_corpus)], ids=["own", "corpus"])
def register(request: pytest.FixtureRequest) -> Path:
    """A register with documents of both kinds, or with irregular ones."""
    return Path(request.param)


def written(register: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """A report in a format."""
    run(["report", "--root", str(register), "--format", *options])
    return capsys.readouterr().out


def test_every_format_has_every_document(register: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON is valid by its schema, and CSV and SARIF have the same documents."""
    value = json.loads(written(register, capsys, "json"))
    Draft202012Validator(json.loads((ROOT / "docs/report.schema.json").read_text())).validate(value)
    ids = [item["id"] for item in value["data"]]
    assert len(ids) == value["status"]["total"] > 0
    table = io.StringIO(written(register, capsys, "csv"), newline="")
    assert ids == [row["id"] for row in csv.DictReader(table, strict=True)]
    results = json.loads(written(register, capsys, "sarif"))["runs"][0]["results"]
    assert ids == [result["properties"]["ticket"] for result in results]


@pytest.mark.skipif(not SARIF.is_file(), reason="the schema of SARIF is not beside this checkout")
@pytest.mark.parametrize("profile", ["full", "github"])
def test_logs_are_valid(register: Path, capsys: pytest.CaptureFixture[str], profile: str) -> None:
    """The schema of SARIF 2.1.0 accepts both profiles."""
    log = json.loads(written(register, capsys, "sarif", "--profile", profile))
    Draft4Validator(json.loads(SARIF.read_text())).validate(log)
    assert all(result["locations"] for result in log["runs"][0]["results"])
