"""What each key of a query holds for, besides the examples of docs/queries.md and those of the contract."""

from __future__ import annotations

import pytest
from tests.register.query.conftest import Words, row

from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.config import Config
from finding_tickets.register.load import Register
from finding_tickets.register.query import QueryError, select
from finding_tickets.register.staleness import CodeInputs

ROWS = (
    row("A-1", severity="P0", status="open", agent="drl", batch=2, title="It waits for  the GPU"),
    row("A-2", severity="P1", status="in-review", agent="drl", batch=10, assignee="Kim Lee"),
    row("A-3", severity="P4", status="closed", outcome="wont-fix", agent="Jo", domains=("simic/telemetry",)),
    row("A-4", domains=("Simic", "tolaria"), categories=("Memory leak / resource issue",), done=1, undone=2),
    row("A-5", files=("/home/kim/src/simic/loss.py", "b.py"), created="2025-01-31", updated="on 2025-02-15"),
    row("A-6", reviews=(("drl", "OBJECT"), ("pytorch", "ENDORSE"), (None, "NOT A BUG")), summary="Long."),
    row(
        "A-7",
        related=(("A-1", "blocked-by"), ("A-9", "duplicate")),
        code=CodeInputs(verifier="verifiers/a.py"),
    ),
    row("TASK-1", kind="review", reviews=(("codereview", "APPROVED"),), created="soon"),
)


def chosen(facts: Register, text: str) -> str:
    """The last characters of the IDs that a query means."""
    return "".join(row.id[-1] if row.kind == "finding" else "T" for row in select(text, facts))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id:a-?", "1234567"),
        ("id:[at]*-1", "1T"),
        ("kind:ticket -id:A-*", ""),
        ('title:"WAITS for the"', "1"),
        ("severity:=P0", "1"),
        ("severity:<=P1", "23"),
        # What states no severity is neither more nor less severe; but it is not a P0.
        ("-severity:P0", "234567T"),
        ("status:Open,inreview", "12"),
        ("status:Review", "2"),
        ("verdict:refuted", "1234567T"),
        ("batch:<=010", "12"),
        ('agent:"deep rl"', "12"),
        ("agent:*", "123"),
        ('assignee:"KIM  lee"', "2"),
        ("assignee:kim", ""),
        ("domain:SIMIC/", "34"),
        ("domain:simic/telemetry", "3"),
        ("category:memory", "4"),
        ('category:"Memory leak/Resource Issue"', "4"),
        ("file:./SRC/*/l*.py", "5"),
        ("file:/src/loss.py", ""),
        ("file:oss.py", ""),
        ("file:c.py", ""),
        ("reviewed-by:pytorch=object", ""),
        ('reviewed-by:*="not-a-bug"', "6"),
        ("reviewed-by:*", "6T"),
        ("reviewed-by:deep-rl,codereview=approved", "6T"),
        ("related:A-7", "1"),
        ("related:A-7=blocks", "1"),
        ("related:A-1=blocks", ""),
        ("related:a-9=duplicate", "7"),
        ("related:*", "17"),
        ("related:*=Blocked_By", "7"),
        ("created:>=2025-01-31", "5"),
        ("-created:<2026", "123467T"),
        # TODAY is 2025-03-01, 14 days after 2025-02-15.
        ("updated:2w", "5"),
        ("updated:<2w", ""),
        ("done:1", "4"),
        ("undone:>1", "4"),
        ("done:0 undone:0", "123567T"),
        ("no:status", "4567T"),
        ("has:checklist", "4"),
        ("has:related", "17"),
        ("has:file", "5"),
        ("has:review", "6T"),
        ("has:verifier", "7"),
        ("has:summary", "6"),
        ("has:severity has:batch has:agent", "12"),
        ("has:assignee", "2"),
        ("has:domain", "34"),
        ("has:category", "4"),
    ],
)
def test_a_condition(words: Words, text: str, expected: str) -> None:
    """It holds for exactly these rows."""
    assert expected == chosen(words(*ROWS), text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind:bug", "no such kind as 'bug'"),
        ("batch:two", "batch takes a number"),
        ("batch:-1", "batch takes a number"),
        ("batch:²", "batch takes a number"),
        ("agent:nobody", "no such agent as 'nobody'"),
        ("category:beauty", "no such category as 'beauty'"),
        ("domain:telemetry", "no such domain as 'telemetry'"),
        ("reviewed-by:nobody", "no such reviewed-by as 'nobody'"),
        ("related:A-8", "no such related as 'A-8'"),
        ("created:January", "created takes a date or an age"),
        ("updated:>2025-02-30", "updated takes a date or an age"),
        ("has:hope", "no such field as 'hope'"),
        ("verdict:open", "no such verdict as 'open'"),
        ("resolution:open", "no such resolution as 'open'"),
        ("status:>open", "status has no order"),
        ("id:A-12", "no document has the ID 'A-12'"),
    ],
)
def test_a_value_that_does_not_exist(words: Words, text: str, reason: str) -> None:
    """Neither the vocabulary nor the register has it."""
    with pytest.raises(QueryError, match=f"^{reason}"):
        select(text, words(*ROWS))


def test_the_words_of_a_register(words: Words) -> None:
    """Spellings that the configuration adds are words of a query, whether a document uses them or not."""
    vocabulary = Vocabulary(
        severities={"P0": ("blocker",)}, agents={"ops": ("operations",)}, domains={"train": ("training",)}
    )
    facts = words(row("A-1", severity="P0", domains=("train",)), config=Config(vocabulary=vocabulary))
    assert "1" == chosen(facts, "severity:blocker")
    assert "1" == chosen(facts, "domain:Training")
    assert "" == chosen(facts, "agent:operations")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sort:-severity", "3214567T"),
        ("sort:-status", "3214567T"),
        ("sort:-batch", "2134567T"),
        # A-1 has the last title; the others have the same one.
        ("sort:title,-id", "T7654321"),
        ("sort:-id", "T7654321"),
        ("sort:-path", "T7654321"),
        ("sort:assignee", "2134567T"),
        ("sort:-agent", "3124567T"),
        ("sort:-created sort:-updated", "5123467T"),
        ("sort:-done", "4123567T"),
        ("sort:verdict", "1234567T"),
    ],
)
def test_sorting(words: Words, text: str, expected: str) -> None:
    """Rows that do not state the key come last either way; equal ones stay in the order of their IDs."""
    assert expected == chosen(words(*ROWS), text)
