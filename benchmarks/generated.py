"""A generated register: findings as people write them, 4.5 kB in the median, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

SEED = 4
MEDIAN = 4_500
SPREAD = 0.35
LAST_BLOCK = 200
"""Bytes: the median, and the usual length of the block with which a ticket gets longer than it was to be."""
BATCH = 50
ODD = 0.1
"""How many of all tickets have something in them that the reader must report."""

SEVERITIES = ("P0", "P1", "P2", "P3", "P4")
STATUSES = ("open", "investigating", "fix-in-progress", "in-review", "closed", "fixed", "wont-fix")
AGENTS = {"DRL": "drl", "PT": "pytorch", "CR": "codereview"}
DOMAINS = ("trainer", "loader", "optim/clip", "optim/state", "telemetry", "rollout/buffer", "model/attention")
REVIEWERS = ("DRL", "PyTorch", "CodeReview")
OPINIONS = ("ENDORSE", "REFINE", "NEUTRAL", "OBJECT")
CATEGORIES = (
    "Correctness bug",
    "Race condition / concurrency",
    "Memory leak / resource issue",
    "Performance bottleneck",
    "Numerical stability",
    "torch.compile compatibility",
    "Dead code / unwired functionality",
    "API design / contract violation",
    "Test coverage gap",
    "Documentation / naming",
    "Defensive programming violation",
    "Legacy code policy violation",
)
NOUNS = (
    "the buffer", "each step", "the gradient norm", "a host copy", "the optimizer state", "the replay queue",
    "`torch.isnan`", "the scheduler", "every parameter", "a **stale** mask", "the reward scale",
    "`state_dict()`", "the worker", "an empty batch", "the `detach()` call", "the metrics dictionary",
)  # fmt: skip
VERBS = (
    "waits for", "allocates", "overwrites", "never reads", "is copied into", "is reset before", "leaks into",
    "silently drops", "is compared with", "hides the failure of",
)  # fmt: skip
CODE = (
    "for name, tensor in state.items():", "    if tensor.isnan().any():", "        return False",
    "    total += tensor.norm().item()  # waits", "buffer = torch.cat([g.flatten() for g in grads])",
    "mask = (actions == target) | (rewards > 0)", "optimizer.zero_grad(set_to_none=True)",
)  # fmt: skip


def write_register(root: Path, count: int, seed: int = SEED) -> None:
    """Write ``count`` tickets into ``root/tickets``, by status, as a repository that has no evidence yet."""
    for path, text in tickets(count, seed):
        file = root / "tickets" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())


def tickets(count: int, seed: int = SEED) -> Iterator[tuple[str, str]]:
    """Path and text of each ticket; every one is drawn for itself, so that more of them change none."""
    for number in range(count):
        yield _ticket(random.Random(f"{seed}-{number}"), number)  # noqa: S311 - chance, not secrecy


def _id(number: int) -> str:
    return f"B{number // BATCH + 1}-{list(AGENTS)[number % len(AGENTS)]}-{number % BATCH + 1:02}"


def _ticket(chance: random.Random, number: int) -> tuple[str, str]:
    ticket_id, status, severity = _id(number), chance.choice(STATUSES), chance.choice(SEVERITIES)
    batch, agent = number // BATCH + 1, AGENTS[ticket_id.split("-")[1]]
    size = chance.lognormvariate(0, SPREAD) * (MEDIAN - LAST_BLOCK / 2)
    title = _sentence(chance).rstrip(".").replace("`", "").replace("*", "")
    head = f"# Finding Ticket: {title}\n{_metadata(chance, ticket_id, severity, status, batch, agent)}"
    tail = _checks(chance, status) + _related(chance, number) + _reviews(chance) + _resolution(chance, status)
    text = head + _location(chance) + _summary(chance)
    fix = f"\n---\n\n## Recommended Fix\n\n{_paragraph(chance)}\n{_code(chance)}"
    text += "\n---\n\n## Detailed Description\n"
    while len(text) + len(fix) + len(tail) < size:
        text += chance.choice((_prose, _prose, _list, _code, _figures))(chance)
    return f"{status}/{ticket_id}.md", text + fix + tail


def _metadata(chance: random.Random, *values: object) -> str:
    ticket_id, severity, status, batch, agent = values
    day = f"2025-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
    rows = (
        ("Ticket ID", f"`{ticket_id}`"),
        ("Severity", f"`{severity}`"),
        ("Status", f"`{status}`"),
        ("Batch", batch),
        ("Agent", f"`{agent}`"),
        ("Domain", f"`{chance.choice(DOMAINS)}`"),
        ("Assignee", ""),
        ("Created", day),
        ("Updated", day),
    )
    return "\n---\n\n## Ticket Metadata\n" + _fields(rows)


def _location(chance: random.Random) -> str:
    first = chance.randint(10, 900)
    rows = (
        ("File(s)", f"`/src/package/{chance.choice(DOMAINS)}.py`"),
        ("Line(s)", f"`{first}-{first + chance.randint(1, 40)}`"),
        ("Function/Class", f"`{chance.choice(('Trainer.step', 'collect', 'Buffer.add', 'clip_norms'))}()`"),
    )
    return "\n---\n\n## Location\n" + _fields(rows)


def _summary(chance: random.Random) -> str:
    ticked = chance.choice(CATEGORIES)
    boxes = "\n".join(f"- [{'x' if name == ticked else ' '}] {name}" for name in CATEGORIES)
    return f"\n---\n\n## Summary\n\n**One-line summary:** {_sentence(chance)}\n\n**Category:**\n{boxes}\n"


def _checks(chance: random.Random, status: str) -> str:
    tick = "x" if status == "fixed" else " "
    items = "\n".join(f"- [{tick}] {_sentence(chance)}" for _ in range(chance.randint(2, 5)))
    return f"\n---\n\n## Verification\n\n### How to Verify the Fix\n\n{items}\n"


def _related(chance: random.Random, number: int) -> str:
    others = {chance.randrange(number + 1) for _ in range(chance.randint(0, 3))} - {number}
    rows = [
        f"| `B{other // 50 + 1}-PT-{other % 50 + 1:02}` | `related` | {_sentence(chance)} |"
        for other in others
    ]
    table = (
        "\n".join(("| Ticket ID | Relationship | Notes |", "|---|---|---|", *sorted(rows)))
        if rows
        else "None."
    )
    return f"\n---\n\n## Related Findings\n\n{table}\n"


def _reviews(chance: random.Random) -> str:
    text = ""
    for reviewer in chance.sample(REVIEWERS, chance.randint(0, 3)):
        verdict = chance.choice(OPINIONS) if chance.random() > ODD else "PENDING"
        opinion = f"| **Verdict** | {verdict} |\n\n**Evaluation:** {_paragraph(chance)}"
        text += f"\n---\n\n## Cross-Review: {reviewer}\n\n| Field | Value |\n|-------|-------|\n{opinion}\n"
    return text


def _resolution(chance: random.Random, status: str) -> str:
    if status not in ("closed", "fixed", "wont-fix"):
        return ""
    word = {"closed": "Not a bug", "fixed": "Fixed", "wont-fix": "Won't fix"}[status]
    return f"\n---\n\n## Resolution\n\n**Status:** {word}\n\n{_paragraph(chance)}\n"


def _fields(rows: tuple[tuple[str, object], ...]) -> str:
    return "\n| Field | Value |\n|-------|-------|\n" + "".join(
        f"| **{name}** | {value} |\n" for name, value in rows
    )


def _prose(chance: random.Random) -> str:
    return f"\n{_paragraph(chance)}\n"


def _list(chance: random.Random) -> str:
    return "\n" + "".join(
        f"{number}. **{_sentence(chance)}** {_sentence(chance)}\n" for number in range(1, 4)
    )


def _code(chance: random.Random) -> str:
    lines = "\n".join(chance.choices(CODE, k=chance.randint(4, 10)))
    return f"\n```python\n# src/package/{chance.choice(DOMAINS)}.py:{chance.randint(10, 900)}\n{lines}\n```\n"


def _figures(chance: random.Random) -> str:
    rows = "".join(f"| {2**n} | {chance.randint(1, 99)} | {_sentence(chance)} |\n" for n in range(5, 9))
    return f"\n### Measured\n\n| Parameters | Waits | Remark |\n|---|---|---|\n{rows}"


def _paragraph(chance: random.Random) -> str:
    return " ".join(_sentence(chance) for _ in range(chance.randint(2, 5)))


def _sentence(chance: random.Random) -> str:
    words = f"{chance.choice(NOUNS)} {chance.choice(VERBS)} {chance.choice(NOUNS)}"
    return words[:1].upper() + words[1:] + "."
