"""Evidence as an in-toto Statement with the test-result predicate, and back.

https://github.com/in-toto/attestation: the subjects are the variants in the work tree, the configuration is
everything else that the result depends on. What the predicate has no key for stands beside its own ones: the
whole verification, and a digest by which an edit of the file is found out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from finding_tickets.model.verification import ClaimResult, Evidence, Input, Verification

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
_SHA256, _COMMIT, _VERSION = "sha256", "gitCommit", "version"


class NoStatementError(ValueError):
    """Why some bytes are no evidence, in a few words."""


def written(evidence: Evidence) -> bytes:
    """The bytes of a Statement; the same evidence gives the same bytes."""
    claims = evidence.verification.claims
    predicate = {
        "result": _result(claims),
        "configuration": [_resource(each) for each in evidence.inputs if not each.is_subject],
        "passedTests": [claim.id for claim in claims if claim.as_expected],
        "warnedTests": [claim.id for claim in claims if claim.holds is None],
        "failedTests": [claim.id for claim in claims if _failed(claim)],
        "verification": evidence.verification.model_dump(mode="json", exclude=_left_out(evidence)),
    }
    statement: dict[str, Any] = {
        "_type": STATEMENT,
        "subject": [_resource(each) for each in evidence.inputs if each.is_subject],
        "predicateType": PREDICATE,
        "predicate": predicate,
    }
    predicate["contentDigest"] = {_SHA256: _content_digest(statement)}
    return (json.dumps(statement, indent=1, ensure_ascii=False) + "\n").encode()


def read(content: bytes) -> Evidence:
    """The evidence in a Statement.

    Raises:
        NoStatementError: It is none, or it was edited.
    """
    try:
        return _evidence(json.loads(content))
    except NoStatementError:
        raise
    except ValidationError as error:
        wrong = error.errors()[0]
        raise NoStatementError(f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}") from None
    except (LookupError, TypeError, AttributeError):
        raise NoStatementError("it is no in-toto Statement of a test result") from None
    except ValueError:
        raise NoStatementError("it is no JSON") from None


def _evidence(statement: Any) -> Evidence:
    predicate = statement["predicate"]
    if (statement["_type"], statement["predicateType"]) != (STATEMENT, PREDICATE):
        raise NoStatementError("it is no in-toto Statement of a test result")
    if predicate.pop("contentDigest")[_SHA256] != _content_digest(statement):
        raise NoStatementError("it was edited: its content is not what its digest says")
    inputs = (
        *(_input(each, is_subject=True) for each in statement["subject"]),
        *(_input(each, is_subject=False) for each in predicate["configuration"]),
    )
    return Evidence(inputs=inputs, verification=Verification.model_validate(predicate["verification"]))


def _left_out(evidence: Evidence) -> set[str]:
    """What is never kept, and what says no more than that a verification is of the work tree."""
    return {"timings"} if evidence.verification.revision else {"timings", "revision"}


def _content_digest(statement: Mapping[str, Any]) -> str:
    plain = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(plain.encode()).hexdigest()


def _failed(claim: ClaimResult) -> bool:
    return claim.holds is not None and not claim.as_expected


def _result(claims: Iterable[ClaimResult]) -> str:
    outcomes = list(claims)
    if any(map(_failed, outcomes)):
        return "FAILED"
    return "PASSED" if outcomes and all(claim.as_expected for claim in outcomes) else "WARNED"


def _resource(given: Input) -> dict[str, Any]:
    """A resource descriptor: by digest, by commit, or by version where there is nothing to digest."""
    if given.kind == "version":
        return {"name": given.name, "annotations": {_VERSION: given.value}}
    return {"name": given.name, "digest": {_COMMIT if given.kind == "commit" else _SHA256: given.value}}


def _input(resource: Mapping[str, Any], *, is_subject: bool) -> Input:
    if "annotations" in resource:
        kind, value = "version", resource["annotations"][_VERSION]
    elif _COMMIT in resource["digest"]:
        kind, value = "commit", resource["digest"][_COMMIT]
    else:
        kind, value = "file", resource["digest"][_SHA256]
    return Input.model_validate(
        {"name": resource["name"], "kind": kind, "value": value, "is_subject": is_subject}
    )
