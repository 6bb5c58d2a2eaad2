"""Evidence as files: in-toto Statements about what was measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from finding_tickets.model.verification import Input

STATEMENT = "https://in-toto.io/Statement/v1"
MEASURED = "https://in-toto.io/attestation/test-result/v0.1"
NO_STATEMENT = "it is no in-toto Statement of a test result"

Recorded = tuple[str, str, str]
"""The name, kind and value of an input."""


def recorded_of(inputs: Iterable[Input]) -> tuple[Recorded, ...]:
    """Inputs as lists and staleness need them."""
    return tuple((each.name, each.kind, each.value) for each in inputs)


class NoStatementError(ValueError):
    """Why some bytes are no evidence, in a few words."""


def read_statement(content: bytes) -> dict[str, Any]:
    """Return the in-toto Statement in some bytes. Raise ``NoStatementError`` for none or an edited one."""
    try:
        statement: dict[str, Any] = json.loads(content)
    except ValueError:
        raise NoStatementError("it is no JSON") from None
    try:
        if (statement["_type"], statement["predicateType"]) != (STATEMENT, MEASURED):
            raise NoStatementError(NO_STATEMENT)
        if statement["predicate"].pop("contentDigest")["sha256"] != _content_digest(statement):
            raise NoStatementError("it was edited: its content is not what its digest says")
    except (LookupError, TypeError, AttributeError):
        raise NoStatementError(NO_STATEMENT) from None
    return statement


def write_statement(subjects: Iterable[Any], predicate: Mapping[str, Any]) -> bytes:
    """The bytes of a Statement that ``read_statement`` reads; the same content gives the same bytes."""
    statement: dict[str, Any] = {
        "_type": STATEMENT,
        "subject": list(subjects),
        "predicateType": MEASURED,
        "predicate": dict(predicate),
    }
    statement["predicate"]["contentDigest"] = {"sha256": _content_digest(statement)}
    return (json.dumps(statement, indent=1, ensure_ascii=False) + "\n").encode()


def _content_digest(statement: Mapping[str, Any]) -> str:
    """The SHA-256 of a Statement without the digest that it carries itself."""
    plain = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(plain.encode()).hexdigest()


def input_of(descriptor: Mapping[str, Any]) -> Recorded:
    """Name, kind and value of a resource descriptor."""
    name, digests, said = (descriptor.get(key, {}) for key in ("name", "digest", "annotations"))
    if digests:
        kind = "commit" if "gitCommit" in digests else "file"
        return name, kind, digests["gitCommit" if kind == "commit" else "sha256"]
    ((kind, value),) = said.items()
    return name, kind, value


def resource(given: Input) -> dict[str, Any]:
    """A resource descriptor: by digest, by commit, or by version."""
    if given.kind in {"file", "commit"}:
        kind = "gitCommit" if given.kind == "commit" else "sha256"
        return {"name": given.name, "digest": {kind: given.value}}
    return {"name": given.name, "annotations": {given.kind: given.value}}
