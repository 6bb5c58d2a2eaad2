"""The Remediation section: what its YAML block says, each error on its own line."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Literal

from finding_tickets.documents.claims import read_claims
from finding_tickets.documents.parts import Part
from finding_tickets.documents.source import Source
from finding_tickets.documents.variants import inside_repository, read_variant
from finding_tickets.documents.yaml_nodes import YamlNode, read_yaml
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.record import Span
from finding_tickets.model.remediation import Answer, Remediation, Unmeasured, VariantRef
from finding_tickets.model.vocabulary import Vocabulary

_KEYS = ("verifier", "variants", "decision", "claims", "unmeasured", "checklist")


def read_remediation(part: Part) -> Remediation | None:
    """The remediation of a ticket; what is wrong in it is reported as an error and left out."""
    blocks = [block for block in part.blocks if block.kind == "CodeBlock" and _language(block.info) == "yaml"]
    if len(blocks) != 1:
        message = f"the Remediation section needs exactly one yaml block; it has {len(blocks)}"
        line = part.source.line(blocks[1].start) if blocks else part.line
        hint = None if blocks else "its fence begins with ```yaml"
        part.source.report_line("remediation-block", line, message, level=Level.ERROR, hint=hint)
        return None
    block = blocks[0]
    root = read_yaml(part.source, block.code, part.source.line(block.first))
    return _remediation(root, part.source, part.source.span(block.start, block.end))


def read_sidecar(data: bytes, path: str) -> tuple[Remediation, tuple[Problem, ...]]:
    """What a file of YAML says in place of a Remediation section, and what is wrong in it."""
    source = Source(path, data, Vocabulary())
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message, hint = f"byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8"
        source.report("remediation-yaml", error.start, message, hint=hint, level=Level.ERROR)
        text = ""
    root = read_yaml(source, text, 1)
    if root is None and not source.problems:
        source.report("remediation-yaml", 0, "the file says nothing", level=Level.ERROR)
    return _remediation(root, source, source.span(0, len(data))), tuple(source.problems)


def _remediation(root: YamlNode | None, source: Source, span: Span) -> Remediation:
    keys = root.mapping("the Remediation block", _KEYS) if root else {}
    return Remediation(
        verifier=_verifier(keys.get("verifier")),
        variants=_variants(keys.get("variants")),
        decision=_decision(keys.get("decision")),
        claims=tuple(read_claims(keys["claims"])) if "claims" in keys else (),
        unmeasured=tuple(_unmeasured(keys.get("unmeasured"))),
        checklist=tuple(_answers(keys.get("checklist"))),
        path=source.path,
        span=span,
        digest=sha256(source.data[span.start : span.end]).hexdigest(),
    )


def _language(info: str) -> str:
    words = info.lower().split()
    return "yaml" if words and words[0] in ("yaml", "yml") else ""


def _verifier(node: YamlNode | None) -> str | None:
    text = node.text("verifier") if node else None
    if node and text and not inside_repository(text):
        node.wrong("remediation-path", f"{text} leaves the repository")
        return None
    return text


def _variants(node: YamlNode | None) -> dict[str, VariantRef]:
    found = node.mapping("variants") if node else {}
    read = {name: read_variant(value) for name, value in found.items()}
    return {name: variant for name, variant in read.items() if variant}


def _decision(node: YamlNode | None) -> Literal["fix", "keep"]:
    text = node.text("decision") if node else "fix"
    if node and text not in (None, "fix", "keep"):
        node.wrong("remediation-type", f"decision is {text!r}", "one of fix, keep")
    return "keep" if text == "keep" else "fix"


def _unmeasured(node: YamlNode | None) -> Iterator[Unmeasured]:
    for item in node.sequence("unmeasured") if node else ():
        keys = item.mapping("an unmeasured claim", ("claim", "why"))
        claim, why = (_required(item, keys, key, "an unmeasured claim") for key in ("claim", "why"))
        if claim and why:
            yield Unmeasured(claim=claim, why=why, line=item.line)


def _answers(node: YamlNode | None) -> Iterator[Answer]:
    for entry in node.sequence("checklist") if node else ():
        keys = entry.mapping("an answer to the checklist", ("item", "claims", "why"))
        item = _required(entry, keys, "item", "an answer to the checklist")
        claims = tuple(_texts(keys.get("claims")))
        why = keys["why"].text("why") if "why" in keys else None
        if entry.kind == "mapping" and not claims and not why:
            entry.wrong(
                "remediation-answer", "an answer to the checklist names claims, or why there are none"
            )
        elif item:
            yield Answer(item=item, claims=claims, why=why, line=entry.line)


def _texts(node: YamlNode | None) -> Iterator[str]:
    for item in node.sequence("claims") if node else ():
        text = item.text("the ID of a claim")
        if text:
            yield text


def _required(item: YamlNode, keys: dict[str, YamlNode], key: str, what: str) -> str | None:
    if key in keys:
        return keys[key].text(key)
    if item.kind == "mapping":
        item.wrong("remediation-missing", f"{what} needs {key!r}")
    return None
