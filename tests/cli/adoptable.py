"""A repository as people leave it: tickets of several forms in folders by outcome, beside other files.

It is made anew each time, and always the same: everything is chosen in turn. What a test expects is counted
while the files are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

THINGS = ["The loader", "The clip", "A hook", "The scheduler", "Checkpointing", "The sampler", "An assert"]
DOES = ["waits for the device", "copies twice", "leaks a buffer", "ignores the mask", "runs on one thread"]
# Severities as several authors write them, and what the tool is to read or to propose.
SEVERITIES = {
    "`P1`": "P1",
    "Critical": "P0",
    "high": "P1",
    "P3": "P3",
    "Low (Informational-leaning)": "P3",
    "**Medium**": "P2",
    "🔴 Critical": "P0",
    "P2 → P3": "P3",
    "nit": "P4",
}
# For each folder what a ticket in it says of its status; empty where it leaves that to the folder.
STATUSES = {
    "open": ["open", "`open`", "⚪ Planned", "", "Confirmed"],
    "triaged": ["open", "", "triaged"],
    "fixed": ["fixed", "closed", "", "✅ Fixed", "VERIFIED", "Resolved"],
    "wontfix": ["wont-fix", "", "closed", "Won't fix"],
    "not-a-bug": ["", "invalid", "closed", "Not a bug"],
}
CONTRARY = {
    "open": "fixed",
    "triaged": "closed",
    "fixed": "open",
    "wontfix": "In progress",
    "not-a-bug": "new",
}
EVERY = 9
"""One ticket of so many contradicts its folder."""


@dataclass
class Made:
    """What is in the repository, by the paths of its files."""

    root: Path
    tickets: dict[str, tuple[str, str]] = field(default_factory=dict)  # title and severity
    contradictions: set[str] = field(default_factory=set)
    others: list[str] = field(default_factory=list)
    filed: set[str] = field(default_factory=set)  # tickets that leave their status to the folder

    def write(self, path: str, text: str) -> None:
        """Write a file at a path from the root."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def make(root: Path, tickets: int, others: int, bugs: str = "docs/bugs") -> Made:
    """Write so many tickets into folders below ``bugs``, and so many other files around them."""
    made = Made(root)
    severities, forms = cycle(SEVERITIES), cycle([table, template, front_matter, labels, bare])
    said = {folder: cycle(words) for folder, words in STATUSES.items()}
    for number in range(1, tickets + 1):
        # Each round of the forms begins in another folder.
        folder = list(STATUSES)[(number + number // 5) % len(STATUSES)]
        severity, form = next(severities), next(forms)
        status = next(said[folder])
        title = f"{THINGS[number % len(THINGS)]} {DOES[number // 2 % len(DOES)]} ({number})"
        if is_contrary := number % EVERY == 0:
            status = CONTRARY[folder]
        name, text = form(number, title, severity, status)
        path = f"{bugs}/{folder}/{name}"
        made.write(path, text)
        made.tickets[path] = title, SEVERITIES[severity]
        made.contradictions |= {path} if is_contrary else set()
        made.filed |= set() if status else {path}
    for path, text in [*within(bugs), *around(others)][:others]:
        made.write(path, text)
        made.others.append(path)
    return made


def row(label: str, value: str) -> str:
    """A row of a table, if there is a value."""
    return f"| **{label}** | {value} |\n" if value else ""


def table(number: int, title: str, severity: str, status: str) -> tuple[str, str]:
    """A ticket with its fields in a table, and some sections."""
    name = f"B{number % 7 + 1}-PT-{number:03}"
    text = f"# Finding Ticket: {title}\n\n## Ticket Metadata\n\n| Field | Value |\n|---|---|\n"
    text += row("Ticket ID", f"`{name}`") + row("Severity", severity) + row("Status", status)
    text += f"\n---\n\n## Location\n\n| Field | Value |\n|---|---|\n{row('File(s)', '`src/a.py`')}"
    return f"{name}.md", f"{text}{row('Line(s)', '`3`-`9`')}\n## Summary\n\n**One-line summary:** It does.\n"


def template(number: int, title: str, severity: str, status: str) -> tuple[str, str]:
    """A ticket that kept the heading of its template, with bold labels in a list."""
    lines = [f"- **Title:** {title}", "- **Context:** Training (`src/a.py`)", f"- **Severity:** {severity}"]
    lines += ["- **Reproduction Steps:**", "  1. Run it.", "- **Observed Behavior:** It does."]
    lines += ["- **Fix Plan:** Do it once.", *([f"- **Status:** {status}"] if status else [])]
    return f"BUG-{number:03}-P4-loader-slow.md", "# BUG Template\n\n" + "\n".join(lines) + "\n"


def front_matter(number: int, title: str, severity: str, status: str) -> tuple[str, str]:
    """A ticket with front matter, whose heading is its ID alone."""
    stated = f"status: {status}\n" if status else ""
    head = f"---\nid: SEC-{number}\ntitle: {title}\nseverity: {severity.strip('`*')}\n{stated}---\n"
    head += f"\n# SEC-{number}\n"
    return f"SEC-{number}.md", f"{head}\n## Description\n\nIt does, in `src/a.py:12`.\n\n## Impact\n\nSome.\n"


def labels(number: int, title: str, severity: str, status: str) -> tuple[str, str]:
    """A ticket with a paragraph of bold labels below a heading that any report could have."""
    lines = [f"**Bug ID:** PERF-{number}", f"**Title:** {title}", f"**Severity:** {severity}"]
    lines += [f"**Status:** {status}"] if status else []
    return f"PERF-{number}.md", "# Bug Report\n\n" + "  \n".join(lines) + "\n\n### 1. Problem\n\nIt does.\n"


def bare(number: int, title: str, severity: str, status: str) -> tuple[str, str]:
    """A ticket that is called a bug, with a table of a header and one row."""
    head = f"# BUG-{number:03}: {title}\n\n| Severity | Status |\n|---|---|\n"
    body = "\n## Steps to reproduce\n\n1. Run it.\n\n## Suggested fix\n\nDo it once.\n"
    return f"bug_{number}.md", f"{head}| {severity} | {status} |\n{body}"


def within(bugs: str) -> Iterator[tuple[str, str]]:
    """Files that lie among the tickets and are none."""
    return ((path.replace("BUGS", bugs), text) for path, text in files(AMONG))


def around(count: int) -> Iterator[tuple[str, str]]:
    """Other files of a repository, of each kind in turn."""
    kinds = list(files(OTHERS))
    for number in range(count):
        path, text = kinds[number % len(kinds)]
        yield path.replace("@", str(number)), text.replace("@", str(number))


def files(text: str) -> Iterator[tuple[str, str]]:
    """The paths and texts in a text that has a line with each path above it."""
    for piece in text.split("====")[1:]:
        path, _, content = piece.partition("\n")
        yield path.strip(), content.lstrip("\n")


AMONG = """
==== BUGS/README.md
# Bugs

| Severity | Meaning |
|---|---|
| Critical | now |
| Low | some day |
==== BUGS/TICKET_TEMPLATE.md
# Finding Ticket: TITLE

| Field | Value |
|---|---|
| **Ticket ID** | `BX-XX-NN` |
| **Severity** | `P0` / `P1` / `P2` |
| **Status** | `open` |
==== BUGS/BUG.md
# BUG Template

- **Title:** <!-- short -->
- **Severity:** <!-- how bad -->
- **Impact:** <!-- on whom -->
- **Status:** <!-- Open | Closed -->
==== BUGS/PROCESS.md
# Bug process

**Owner:** all

## Severity

- **P0:** now
- **P1:** soon
==== BUGS/SUMMARY.md
# Bug report summary

| ID | Severity | Status |
|---|---|---|
| B1-PT-001 | P1 | open |
"""
OTHERS = """
==== docs/plans/2026-@.md
# PLAN-@: Faster

**Status:** In progress
**Priority:** High

## Problem

It is slow.

## Proposed solution

Cache it in `src/a.py`.

## Verification

- [ ] measured
==== prompts/agent-@.md
---
name: reviewer-@
description: finds bugs
model: large
---

# Bug Report

Report each finding like this:

**ID:** BUG-NNN
**Severity:** Critical | High | Low
**Status:** open
==== docs/metrics/MET-@_rate.md
# Metric: [MET-@] Rate

> **Status:** `[x] Planned` `[ ] Wired`

## 1. Identity

| Field | Value |
|---|---|
| **ID** | `MET-@` |
| **Priority** | `P2-nice-to-have` |

## 2. Checklist

- [x] emitted
==== docs/stories/done/US-@.md
---
id: US-@
priority: high
status: done
---

# As a user I want @

## Acceptance criteria

- [x] it works
==== docs/templates/bug-template-@.md
# Bug Report

**Severity:** <P0, P1 or P2>
**Status:** open

## Problem

What happens?
==== docs/reviews/audit-@.md
# Code Review: module @

**Reviewer:** Kim
**Date:** 2026-01-01
**Verdict:** Approve

## Findings

### 1. Keys in logs

**Severity:** High

### 2. A copy

**Severity:** Low
"""
