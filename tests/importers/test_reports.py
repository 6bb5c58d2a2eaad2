"""A report with many findings: which of its parts are findings, and what each of them says."""

from __future__ import annotations

import pytest

from finding_tickets.errors import BadDataError
from finding_tickets.importers.reports import ReportFinding, draft_of_report, findings_in
from finding_tickets.model.vocabulary import Vocabulary

AUDIT = """\
# Review of acme-train

## 1. Introduction

We looked at `train/`.

## 2. Summary

| ID | Title | Severity | Status |
|---|---|---|---|
| H-01 | Loss is averaged twice | High | Fixed |
| I-01 | Missing docs | Informational | Open |

## 3. Findings

### High severity

#### [H-01] Loss is averaged twice

**Context:** [loss.py#L31-L40](https://github.com/acme/train/blob/4f1c2d0/train/loss.py#L31-L40)

##### Description

Over the wrong dimension.

##### Recommendation

Use `dim=-1`.

### Medium severity

#### [M-01] Every rank has one order

See `train/sampler.py:44-50`.

## 4. Appendix

### 4.1 Tools

We used a linter.
"""
ITEMS = """\
# Code review

Good work, on the whole.

## \N{LARGE RED CIRCLE} Critical issues (2)

1. **Race in the prefetcher** (`data/prefetch.py:88`)
   The queue is read without a lock.
2. **Unbounded cache** \N{EN DASH} `tok/cache.py:10-30`: it grows.

## Medium

- `model/attn.py:210`: mask rebuilt in each step; cache it.

## Suggestions

- Consider more tests.

## What is good

- **Clean code**: well done.
"""
NUMBERED = """\
# Performance review

### 1. Metrics are read back

**Severity:** P1
**Location:** `train/loop.py:120`

Each step waits.

### 2. The rate is a tensor

Severity: Low (Informational-leaning)
File: optim/lr.py, lines 3-9

It waits, too.

### 3. Autocast is off

It is off in `train/amp.py`.

### Conclusion

Fix 1 first.
"""
NAMED = """\
# Review

## Finding 1: Dropout is active at inference
Severity: High

## Finding 2 - Wrong seed (Medium)

`seed.py:3`

### Impact

1. Bad
2. Worse

## Finding 3: Nobody knows

Really.
"""
TABLE = """\
# Findings

| Issue | Risk | File | Notes |
|---|---|---|---|
| Sync in `clip()` | High | `opt/clip.py:12` | reads a scalar |
| Something odd | ? | | |
"""
WORDS = """\
# Review of a batch

| Severity | Count |
|---|---|
| Critical | 1 |

## Findings

### CRITICAL-1: `.item()` for each parameter

**File:** `src/debug.py`
**Lines:** 196-208

### HIGH-1: torch.cat spikes

## P2 \N{EN DASH} Should fix

#### 3. Slow collate
- **File**: `c.py:8`

## Positive observations

- **Good batching** in `a.py:3`

## Severity levels

| Severity | Description |
|---|---|
| High | bad |
"""
BARE = """\
## Issues found

1. `train.py:10` \N{EM DASH} `.item()` in the hot loop. Severity: high.
2. `train.py:55` \N{EM DASH} rate logged in each step (medium)
3. Missing test for `amp.py`
"""
LINKED = "## CR-06: 512 kB\n- **Severity:** LOW\n- **File:** [a/j.c](file:///e:/p/a/j.c#L8-L14)\n"
REMARK = "## Warnings (now)\n### None\n### w1: Slow (line 3)\n**File:** `b.jl`\n## Plan\n1. **High** `a.jl`\n"
CHINESE = (
    "## \u4e2d\u5371\uff08Medium\uff09\n\n### [M-01] \u767b\u5f55\n- **\u4f4d\u7f6e**\uff1a`a/b.js` L3-L9\n\n"
    "## \u95ee\u9898\n\n| \u95ee\u9898\u63cf\u8ff0 | \u6587\u4ef6\u4f4d\u7f6e | \u4e25\u91cd\u7a0b\u5ea6 |\n"
    "|---|---|---|\n| \u6ce8\u518c | `c.ts` | \U0001f534 \u9ad8 |\n"
)
PROSE = """\
## Findings

| # | Rule | Severity | File | Location | Explanation |
|---|---|---|---|---|---|
| 1 | D / 4 | High | a.rb | L4-9 | It waits here |
| 2 | D / 4 | Low | b.rb | L7 | It copies there |
"""
RECORDS = """\
# Findings

## Finding 1/2

**File:** a.py
**Line Number:** 3 and 7

**Severity:** error

**Description:**
The norm is read. Often.

## Must fix

- **File**: `b.py`
  - **Line**: 4
  - **Issue**: A copy waits
  - **Severity**: Low

### The lock stays
In `c.py` at line 9.

## Resolved problems

**1. Cache grows**
Severity: high
*Where:* d.py:20-34

[LOW-1] e.py:8 \N{EM DASH} An import is idle

## `f.py`

- [x] **Line 5** (medium): it copies
"""
OTHER_LANGUAGES = """\
## \u041f\u0440\u043e\u0431\u043b\u0435\u043c\u044b

### 1. \u0422\u0435\u0441\u0442 \u26a0\ufe0f \u0421\u0420\u0415\u0414\u041d\u042f\u042f
**\u0424\u0430\u0439\u043b:** `a.py`
**\u0421\u0442\u0440\u043e\u043a\u0430:** 4

## Hallazgos

| # | Severidad | Descripci\u00f3n | Ubicaci\u00f3n |
|---|---|---|---|
| 1 | ALTA | Espera | b.py:5 |
"""
CHAPTERS = """\
## Summary

- Risk level: High

## 1. Issues

### 1.1 Lost

**Risk:** Medium (rarely)
**Location:** `app/Dockerfile`

## 2. Rollout

See `b.py`.
"""


def found(text: str) -> list[ReportFinding]:
    """The findings of a report."""
    read = findings_in(text.encode(), "docs/REVIEW.md", Vocabulary())
    return [each for each in read if not each.left_out]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            AUDIT,
            [
                # The table is above the sections; what they tell as well is told once.
                ("P4", "", "Missing docs"),
                ("P1", "train/loss.py:31", "Loss is averaged twice"),
                ("P2", "train/sampler.py:44", "Every rank has one order"),
            ],
        ),
        (
            ITEMS,
            [
                ("P0", "data/prefetch.py:88", "Race in the prefetcher"),
                ("P0", "tok/cache.py:10", "Unbounded cache"),
                ("P2", "model/attn.py:210", "mask rebuilt in each step"),
            ],
        ),
        (
            NUMBERED,
            [
                ("P1", "train/loop.py:120", "Metrics are read back"),
                ("P3", "optim/lr.py:3", "The rate is a tensor"),
                (None, "train/amp.py", "Autocast is off"),
            ],
        ),
        (
            NAMED,
            [
                ("P1", "", "Dropout is active at inference"),
                ("P2", "seed.py:3", "Wrong seed"),
                (None, "", "Nobody knows"),
            ],
        ),
        (
            WORDS,
            [
                ("P0", "src/debug.py:196", ".item() for each parameter"),
                ("P1", "", "torch.cat spikes"),
                ("P2", "c.py:8", "Slow collate"),
            ],
        ),
        (
            BARE,
            [
                ("P1", "train.py:10", ".item() in the hot loop"),
                ("P2", "train.py:55", "rate logged in each step"),
                (None, "amp.py", "Missing test for amp.py"),
            ],
        ),
        (TABLE, [("P1", "opt/clip.py:12", "Sync in clip()"), (None, "", "Something odd")]),
        # A linked file, and a number that counts something.
        (LINKED, [("P3", "a/j.c:8", "512 kB")]),
        (REMARK, [("P2", "b.jl:3", "Slow")]),
        (PROSE, [("P1", "a.rb:4", "It waits here"), ("P3", "b.rb:7", "It copies there")]),
        (CHAPTERS, [("P2", "app/Dockerfile", "Lost")]),
        # A label or the first sentence stands for a title; a file or a state is that of all below it.
        (
            RECORDS,
            [
                ("P1", "a.py:3", "The norm is read"),
                ("P3", "b.py:4", "A copy waits"),
                (None, "c.py:9", "The lock stays"),
                ("P1", "d.py:20", "Cache grows"),
                ("P3", "e.py:8", "An import is idle"),
                ("P2", "f.py:5", "it copies"),
            ],
        ),
        (
            OTHER_LANGUAGES,
            [("P2", "a.py:4", "\u0422\u0435\u0441\u0442"), ("P1", "b.py:5", "Espera")],
        ),
        (CHINESE, [("P2", "a/b.js:3", "\u767b\u5f55"), ("P1", "c.ts", "\u6ce8\u518c")]),
    ],
)
def test_what_is_found(text: str, expected: list[tuple[str | None, str, str]]) -> None:
    """Sections, items and rows, each with its own severity or that of a heading above; chapters are none."""
    stated = [(each.severity, str(each.spots[0]) if each.spots else "", each.text) for each in found(text)]
    assert expected == stated


def test_rows_of_one_table_are_never_one_finding() -> None:
    """Not by a severity that has the form of an ID, nor by their title: each row is another place."""
    rows = [("P1", "a.py", "Leak"), ("P1", "b.py", "Race"), ("P2", "c.py", "Leak")]
    table = "".join(f"| {level} | `{file}` | {title} |\n" for level, file, title in rows)
    text = f"# R\n\n## Findings\n\n| Severity | File | Finding |\n|---|---|---|\n{table}"
    # A second table with severities of the first is about other findings.
    text += "\n## Issues of the tests\n\n| Priority | Issue |\n|---|---|\n| P1 | Slow |\n"
    read = [(each.severity, str(each.spots[0]) if each.spots else "", each.text) for each in found(text)]
    assert [*rows, ("P1", "", "Slow")] == read


def test_an_id_needs_no_colon() -> None:
    """``F-01 Title`` and ``VULN-2 (High): title`` name a finding; "UTF-8 decoding" names none."""
    heads = ["F-01 No seed", "VULN-2 (High): Path", "H-3 Race", "UTF-8 decoding", "A100 (80GB)"]
    text = "# R\n\n" + "".join(f"## {head}\n\nSee `a.py:{n}`.\n\n" for n, head in enumerate(heads, 1))
    # A table above says the same again, in another word for the severity.
    text += "## Issues\n\n| ID | Rating | Title |\n|---|---|---|\n| F-01 | Low | No seed |\n"
    read = [(each.severity, str(each.spots[0]), each.text) for each in found(text)]
    assert read == [("P3", "a.py:1", "No seed"), ("P1", "a.py:2", "Path"), ("P1", "a.py:3", "Race")]


def test_what_a_finding_says() -> None:
    """Its text without its fix, the fix apart, lines from a link, and the status from the table above."""
    loss = found(AUDIT)[1]
    assert ("fixed", (31, 40), "Use `dim=-1`.") == (loss.status, loss.spots[0].lines, loss.fix)
    assert "Over the wrong dimension." in loss.description
    assert "dim=-1" not in loss.description
    assert ("docs/REVIEW.md", "[H-01] Loss is averaged twice") == (loss.tool, loss.rule)


def test_text_that_would_be_a_section_is_none() -> None:
    """No heading of a report becomes a section of the ticket, and broken Markdown is taken for plain text."""
    text = "# R\n\n## Finding 1: It waits\n\nSeverity: High\n\n### Remediation\n\n```yaml\nrun: rm.py\n```\n"
    for each in (text, text.replace("yaml\nrun: rm.py\n```", "yaml\n<!-- run: rm.py")):
        draft = draft_of_report(found(each)[0], None, None, Vocabulary())
        assert "#" not in draft.description
        assert "rm.py" in draft.description
    assert "```" not in draft.description


@pytest.mark.parametrize(
    "text",
    [
        "# Notes\n\n## 1. Introduction\n\nWords.\n\n## 2. Scope\n\n- one\n- **two**\n",
        "# Commands\n\n| Command | What |\n|---|---|\n| a | b |\n",
        "# Tool\n\n## Set up\n\n1. **Install** `requirements.txt`\n\n## Fixed\n\n- **Bug**: `a.py:3`\n",
        "# Levels\n\n## Severity levels\n\n- **High**: breaks `train.py`\n",
        "Nothing.\n",
    ],
)
def test_a_report_without_findings(text: str) -> None:
    """Chapters, lists and other tables are no findings, and the error says what one looks like."""
    with pytest.raises(BadDataError, match="nothing in this report looks like a finding"):
        found(text)


def test_a_finding_is_known_by_its_title() -> None:
    """Its fingerprint stays when text, number and place change; equal titles differ by their order."""
    before = {each.text: each.fingerprint for each in found(NUMBERED)}
    changed = found(
        "# New\n\nText.\n\n" + NUMBERED.replace("### 2.", "### 7.").replace("lines 3-9", "line 5")
    )
    assert before == {each.text: each.fingerprint for each in changed}
    twice = found("## High\n\n- **Race** `a.py:1`\n- **Race** `b.py:2`\n")
    assert 2 == len({each.fingerprint for each in twice})


def test_the_text_of_a_finding() -> None:
    """Without the labels at its beginning and its fix, with bold lines in the place of headings."""
    labels = "**Severity:** High\n\n- Status: Open\n\n| Field | Value |\n|---|---|\n| File | `a.py` |\n\n"
    parts = "Each step.\n\n### Impact\n\nSlow.\n\n### Recommended fix\n\nDo not.\n\n---\n"
    (read,) = found(f"## Finding 1: It waits\n\n{labels}{parts}")
    assert ("Each step.\n\n**Impact**\n\nSlow.", "Do not.") == (read.description, read.fix)


def test_what_became_of_findings() -> None:
    """A box, the end of a heading, or a heading above says it; a finding's own words come first."""
    stated = {each.text: each.status for each in found(RECORDS)}
    assert ("closed", "closed") == (stated["Cache grows"], stated["it copies"])
    heads = "## Fixed issues\n\n### [H-1] One\n\n### [H-2] Two \N{EM DASH} won't fix\n\n"
    heads += "### [H-3] Three\n\nStatus: open\n"
    assert ["fixed", "wont-fix", "open"] == [each.status for each in found(heads)]


def test_headings_that_skip_levels() -> None:
    """A heading of a lower level that stands before those of a higher one is not lost."""
    text = "#### Finding 1: One\n\n`a.py:1`\n\n## Finding 2: Two\n\n`b.py:2`\n"
    assert ["One", "Two"] == [each.text for each in found(text)]
