"""The public Python API does what its page shows, and loads nothing before it is used."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import finding_tickets
from finding_tickets import json_schema, load

ROOT = Path(__file__).parents[1]


def test_the_page_shows_what_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example of docs/api.md is run in this repository."""
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testfile(str(ROOT / "docs/api.md"), module_relative=False)
    assert (0, True) == (failed, tried > 0)


def test_every_public_name_is_there() -> None:
    """Each name of ``__all__`` can be imported, and an unknown one is an error of Python's usual kind."""
    assert all(hasattr(finding_tickets, name) for name in finding_tickets.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = finding_tickets.nothing


def test_a_verifier_needs_no_pydantic() -> None:
    """Neither the package nor what verifiers import loads pydantic, a Markdown parser or YAML."""
    code = "import finding_tickets, finding_tickets.workload, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert set() == {"pydantic", "pyromark", "yaml"} & set(loaded.split())


def test_the_schema_is_current() -> None:
    """docs/records.schema.json is what ``python -m finding_tickets.model.schema`` prints."""
    assert json_schema() == json.loads((ROOT / "docs/records.schema.json").read_text(encoding="utf-8"))


def test_every_record_follows_the_schema() -> None:
    """Tickets, reviews and verifications of this register are valid, as data and as read back from it."""
    validator = jsonschema.Draft202012Validator(json_schema())
    register = load(ROOT)
    for document in register.documents:
        item = document.model_dump(mode="json")
        validator.validate(item)
        assert document == type(document).model_validate_json(json.dumps(item))
        verification = register.measured(document).verification
        assert verification is not None
        validator.validate(verification.model_dump(mode="json"))
