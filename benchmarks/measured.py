"""A generated register, one ticket in a hundred measured: ``python -m benchmarks.measured ROOT COUNT``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from benchmarks.generated import tickets, write_register
from finding_tickets.documents.reading import read_document
from finding_tickets.model.verification import Evidence, Verification
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.verify.evidence import collect_inputs, file_inputs, load, write
from finding_tickets.verify.plan import plan

MEASURED = 100
"""One ticket in so many has evidence."""
OURS = Path(__file__).parents[1]
PATTERN = "B7-PT-02"
"""The ticket of this repository whose block, code and evidence the measured tickets have."""
EVIDENCE = "evidence"


def write_measured_register(root: Path, count: int, one_in: int = MEASURED) -> None:
    """A register in which one ticket in so many has a remediation and fresh evidence."""
    write_register(root, count)
    text = (OURS / f"tickets/{PATTERN}.md").read_text(encoding="utf-8")
    block = text[text.index("## Remediation") :].partition("\n## ")[0]
    for folder in ("fixes", "verifiers"):
        shutil.copytree(OURS / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for number, (path, _) in enumerate(tickets(count)):
        if number % one_in == 0:
            file = root / "tickets" / path
            file.write_text(f"{file.read_text(encoding='utf-8')}\n---\n\n{block}\n", encoding="utf-8")
            record(root, f"tickets/{path}")


def record(root: Path, path: str) -> None:
    """Give a document the evidence of the pattern, as if it had been measured now."""
    document = read_document((root / path).read_bytes(), path, Vocabulary())[0]
    planned = plan(document, root) if document else None
    if document is None or planned is None:
        raise ValueError(f"{path} has nothing to measure")
    (file,) = (OURS / EVIDENCE / PATTERN).glob("*.json")
    recorded = load(file.read_bytes())
    done = Verification(**{**vars(recorded.verification), "ticket": document.id.value})
    inputs = collect_inputs(planned, done, file_inputs((), planned))
    write(Evidence(inputs=inputs, verification=done), root, EVIDENCE)


if __name__ == "__main__":
    write_measured_register(Path(sys.argv[1]), int(sys.argv[2]))
