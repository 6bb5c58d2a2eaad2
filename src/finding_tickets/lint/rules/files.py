"""Rules about the files that a Remediation section names: the verifier and the variants."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from finding_tickets.documents.reading import Document
from finding_tickets.lint.rules.context import Context
from finding_tickets.lint.rules.rule import Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.remediation import VariantRef
from finding_tickets.register.convention import verifier_path

_TO_REPLACE = (
    b'. Replace it by the code that the ticket speaks of."""',
    b'. Replace it by your own."""',
)
"""How the first lines of templates/found.py.j2 and templates/fix.py.j2 end."""
_LONGEST_LINE = 1000


def _block(line: str) -> str:
    """An example: a Remediation section with this line and an answer to the item of the checklist."""
    answer = "checklist:\n  - {item: Count the waits, why: by hand}"
    return f"## Remediation\n\n```yaml\n{line}\n{answer}\n```"


@rule(
    "outside-repository",
    Level.ERROR,
    "Documents, verifiers and variants are files of this repository, links followed: measuring runs them.",
    wrong={
        "tickets/B1-PT-01.md": _block("verifier: verifiers/out.py"),
        "verifiers/out.py": "-> ../../elsewhere.py",
    },
    right={"tickets/B1-PT-01.md": _block("verifier: verifiers/in.py"), "verifiers/in.py": ""},
    bad_data=True,
)
def outside_repository(document: Document, context: Context) -> Iterator[Remark]:
    """Paths that leave the repository, by ``..``, from the root of the disk or through a link."""
    if document.remediation is None:
        return
    verifier = document.remediation.verifier
    if verifier and not context.inside(verifier):
        yield Remark(document.remediation.span.line, f"verifier {verifier} leaves the repository")
    for name, variant in document.remediation.variants.items():
        if _is_file(variant) and not context.inside(variant.module):
            yield Remark(variant.line, f"variant {name} leaves the repository: {variant.raw}")


@rule(
    "missing-verifier",
    Level.ERROR,
    "Claims are measured by a verifier, which is the file that the ticket names or verifiers/<id>.py.",
    wrong={"tickets/B1-PT-01.md": _block("verifier: verifiers/gone.py")},
    right={"tickets/B1-PT-01.md": _block("verifier: verifiers/here.py"), "verifiers/here.py": ""},
)
def missing_verifier(document: Document, context: Context) -> Iterator[Remark]:
    """Verifiers that are not there, named by the ticket or needed by its claims."""
    remediation = document.remediation
    if remediation is None or not (remediation.verifier or remediation.claims):
        return
    if remediation.verifier is None and not context.understood(document):
        return
    verifier = remediation.verifier or verifier_path(document.id.value)
    if context.inside(verifier) and not context.exists(verifier):
        hint = context.files_like(verifier) or "tickets new --with-verifier writes one"
        yield Remark(remediation.span.line, f"there is no verifier {verifier}", hint)


@rule(
    "missing-variant",
    Level.ERROR,
    "A variant is a function of a file that exists. Its code is read for this, not run.",
    wrong={
        "tickets/B1-PT-01.md": _block("variants: {found: 'fixes/found.py:stop'}"),
        "fixes/found.py": "def step(): ...\n",
    },
    right={
        "tickets/B1-PT-01.md": _block("variants: {found: 'fixes/found.py:step'}"),
        "fixes/found.py": "def step(): ...\n",
    },
)
def missing_variant(document: Document, context: Context) -> Iterator[Remark]:
    """Variants whose file or function is not there."""
    remediation = document.remediation
    if remediation is None:
        return
    for name, variant in remediation.variants.items():
        if _is_in_work_tree(variant, context):
            if not context.exists(variant.module):
                message = f"variant {name}: there is no file {variant.module}"
                yield Remark(variant.line, message, context.files_like(variant.module))
                continue
            names = _functions(context.root / variant.module)
            if variant.function not in names:
                close = get_close_matches(variant.function, names, n=1)
                hint = f"did you mean {close[0]!r}?" if close else None
                yield Remark(
                    variant.line, f"variant {name}: {variant.module} defines no {variant.function}", hint
                )


@rule(
    "example-code",
    Level.WARNING,
    "The code that `tickets new --with-verifier` writes is an example that can be measured, and says nothing "
    "about the ticket until its own code stands in its place.",
    wrong={
        "tickets/B1-PT-01.md": _block("variants: {found: 'fixes/found.py:step'}"),
        "fixes/found.py": '"""An example. Replace it by your own."""\n\n\ndef step(): ...\n',
    },
    right={
        "tickets/B1-PT-01.md": _block("variants: {found: 'fixes/found.py:step'}"),
        "fixes/found.py": '"""One step of training."""\n\n\ndef step(): ...\n',
    },
)
def example_code(document: Document, context: Context) -> Iterator[Remark]:
    """Variants whose first line still says that they are to be replaced."""
    for name, variant in document.remediation.variants.items() if document.remediation else ():
        is_here = _is_in_work_tree(variant, context)
        if is_here and _first_line(context.root / variant.module).endswith(_TO_REPLACE):
            message = f"variant {name} is an example still: {variant.module}"
            yield Remark(variant.line, message, "write the ticket's own code, its first line too")


def _first_line(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.readline(_LONGEST_LINE).rstrip()
    except OSError:
        return b""


def _is_file(variant: VariantRef) -> bool:
    return variant.module.endswith(".py")


def _is_in_work_tree(variant: VariantRef, context: Context) -> bool:
    return _is_file(variant) and variant.revision is None and context.inside(variant.module)


def _functions(path: Path) -> set[str]:
    """Names that a file binds at its top level; empty where it is no Python."""
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return set()
    defined = {
        node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    imported = {
        alias.asname or alias.name
        for node in body
        if isinstance(node, ast.ImportFrom | ast.Import)
        for alias in node.names
    }
    assigned = {
        target.id
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return defined | imported | assigned
