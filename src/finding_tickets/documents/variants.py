"""References to a variant's function: ``path.py:function`` or ``package.module:function``, with ``@REV``."""

from __future__ import annotations

import posixpath
import re

from finding_tickets.documents.yaml_nodes import YamlNode
from finding_tickets.model.remediation import VariantRef

_REFERENCE = re.compile(r"(?P<module>[^:@\s]+):(?P<function>[A-Za-z_][\w.]*)(?:@(?P<revision>[^\s@]+))?")


def read_variant(node: YamlNode) -> VariantRef | None:
    """The function that a node names, or None after reporting what is wrong."""
    raw = node.text("a variant")
    if raw is None:
        return None
    match = _REFERENCE.fullmatch(raw)
    if match is None:
        hint = "write path.py:function or package.module:function, with @REV for a git revision"
        node.wrong("remediation-variant", f"{raw!r} does not name a function", hint)
        return None
    if not inside_repository(match["module"]):
        node.wrong("remediation-path", f"{match['module']} leaves the repository")
        return None
    return VariantRef(raw=raw, line=node.line, **match.groupdict())


def inside_repository(path: str) -> bool:
    """Whether a path relative to the repository's root stays below it, symbolic links aside."""
    normal = posixpath.normpath(path.replace("\\", "/"))
    return not (
        normal.startswith(("/", "~")) or normal.split("/")[0] == ".." or re.match(r"[A-Za-z]:", normal)
    )
