"""The Remediation block is read key by key, and each mistake is named on its own line."""

from __future__ import annotations

import pytest
from tests.documents.conftest import Finding, Reading

from finding_tickets.model.ticket import Remediation
from finding_tickets.model.vocabulary import Level

# The section's heading is on line 5, its fence on 7: line n of the YAML is line 7 + n of the file.
FENCE = 7


def read(finding: Finding, *lines: str) -> Reading:
    """A ticket with these lines of YAML."""
    return finding("\n".join(["## Remediation", "", "```yaml", *lines, "```", ""]))


def remediation(finding: Finding, *lines: str) -> Remediation:
    """The remediation in these lines of YAML, which must be right."""
    reading = read(finding, *lines)
    assert () == reading.problems
    assert reading.ticket.remediation
    return reading.ticket.remediation


def claims(finding: Finding, *lines: str) -> list[tuple[str, str]]:
    """ID and value of each claim about ``found``."""
    found = remediation(finding, "claims:", "  found:", *(f"    {line}" for line in lines))
    return [(claim.id, claim.value) for claim in found.claims]


def test_an_empty_block(finding: Finding) -> None:
    """Every key is optional: the convention fills in what is not there."""
    found = remediation(finding, "# nothing yet")
    assert (None, {}, "fix", ()) == (found.verifier, found.variants, found.decision, found.claims)


def test_variants(finding: Finding) -> None:
    """A variant is a function in a file or a module, perhaps at a revision, in the order of the block."""
    found = remediation(
        finding,
        "verifier: verifiers/b1.py",
        "variants:",
        "  found: fixes/b1/found.py:check@v1.2",
        "  applied: package.module:Class.method",
    )
    assert "verifiers/b1.py" == found.verifier
    assert [
        ("found", "fixes/b1/found.py", "check", "v1.2", FENCE + 3),
        ("applied", "package.module", "Class.method", None, FENCE + 4),
    ] == [(name, ref.module, ref.function, ref.revision, ref.line) for name, ref in found.variants.items()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("syncs: 1", [("found.syncs", "1")]),
        ("syncs: 4*params + 2", [("found.syncs", "4*params + 2")]),
        ("syncs: <= 5", [("found.syncs", "<= 5")]),
        ("syncs: '>= 2'", [("found.syncs", ">= 2")]),
        ("syncs: 1..2", [("found.syncs", "1..2")]),
        ("syncs: {is: O(params)}", [("found.syncs", "O(params)")]),
        ("syncs: [<= 5, O(1)]", [("found.syncs[0]", "<= 5"), ("found.syncs[1]", "O(1)")]),
        ("same_result_as: fix", [("found.same_result_as", "fix")]),
    ],
)
def test_values(finding: Finding, line: str, expected: list[tuple[str, str]]) -> None:
    """A value is kept as written; several values are several claims with a number each."""
    assert expected == claims(finding, line)


def test_a_claim_in_full(finding: Finding) -> None:
    """A mapping says where a claim applies, what is expected of it, and why."""
    [claim] = remediation(
        finding,
        "claims:",
        "  recommended:",
        "    syncs: {is: 1, at: {devices: 1, params: '>= 2'}, expect: refuted, why: it reads twice}",
    ).claims
    assert ("recommended", "syncs", "1", "refuted", "it reads twice", FENCE + 3) == (
        claim.variant,
        claim.metric,
        claim.value,
        claim.expect,
        claim.why,
        claim.line,
    )
    assert {"devices": "1", "params": ">= 2"} == claim.at


def test_the_rest(finding: Finding) -> None:
    """The decision, what is not measured, and what answers the checklist."""
    found = remediation(
        finding,
        "decision: keep",
        "unmeasured:",
        "  - {claim: 10 us each, why: a time}",
        "checklist:",
        "  - {item: One sync, claims: [fix.syncs, 'fix.peak_bytes[0]']}",
        "  - {item: A profile, why: a person reads it}",
    )
    assert "keep" == found.decision
    assert [("10 us each", "a time", FENCE + 3)] == [
        (each.claim, each.why, each.line) for each in found.unmeasured
    ]
    assert [
        ("One sync", ("fix.syncs", "fix.peak_bytes[0]"), None),
        ("A profile", (), "a person reads it"),
    ] == [(answer.item, answer.claims, answer.why) for answer in found.checklist]


MISTAKES = {
    "a tab": (["claims:", "\tfound: 1"], "remediation-yaml", 2),
    "a list that is not closed": (["claims:", "  found:", "    syncs: [1, 2"], "remediation-yaml", 3),
    "a comparison that needs quotes": (["claims:", "  found:", "    syncs: >= 2"], "remediation-yaml", 3),
    "a key given twice": (["decision: fix", "decision: keep"], "remediation-twice", 2),
    "an unknown key": (["verifier: v.py", "claim:", "  found: {syncs: 1}"], "remediation-key", 2),
    "an unknown key of a claim": (
        ["claims:", "  f:", "    syncs: {is: 1, expects: refuted}"],
        "remediation-key",
        3,
    ),
    "a tolerance for a count": (
        ["claims:", "  f:", "    syncs: {is: 1, tolerance: 2}"],
        "remediation-key",
        3,
    ),
    "a list for a mapping": (["claims:", "  - found"], "remediation-type", 2),
    "a text for a mapping": (["claims:", "  found: 4*params"], "remediation-type", 2),
    "a text for the whole block": (["syncs are bad"], "remediation-type", 1),
    "a yes for a value": (["claims:", "  found:", "    syncs: yes"], "remediation-type", 3),
    "nothing for a value": (["claims:", "  found:", "    syncs:"], "remediation-type", 3),
    "no value in a list": (["claims:", "  found:", "    syncs: []"], "remediation-type", 3),
    "a list within a list": (["claims:", "  found:", "    syncs: [[1]]"], "remediation-type", 3),
    "no is": (["claims:", "  found:", "    syncs: {why: so}"], "remediation-missing", 3),
    "no why": (["claims:", "  found:", "    syncs: {is: 1, expect: refuted}"], "remediation-why", 3),
    "an unknown expectation": (
        ["claims:", "  f:", "    syncs: {is: 1, expect: broken}"],
        "remediation-type",
        3,
    ),
    "an unknown decision": (["decision: maybe"], "remediation-type", 1),
    "a tolerance in words": (
        ["claims:", "  f:", "    same_result_as: {is: g, tolerance: a}"],
        "remediation-type",
        3,
    ),
    "an endless tolerance": (
        ["claims:", "  f:", "    same_result_as: {is: g, tolerance: inf}"],
        "remediation-type",
        3,
    ),
    "a negative tolerance": (
        ["claims:", "  f:", "    same_result_as: {is: g, tolerance: -1}"],
        "remediation-type",
        3,
    ),
    "no function": (["variants:", "  found: fixes/found.py"], "remediation-variant", 2),
    "a variant outside": (["variants:", "  found: ../found.py:f"], "remediation-path", 2),
    "a variant at the top": (["variants:", "  found: /etc/found.py:f"], "remediation-path", 2),
    "a verifier outside": (["verifier: verifiers/../../v.py"], "remediation-path", 1),
    "unmeasured without why": (["unmeasured:", "  - {claim: 10 us}"], "remediation-missing", 2),
    "an answer without claims": (["checklist:", "  - item: One sync"], "remediation-answer", 2),
    "a pipe": (["run: train.py | tee log"], "remediation-run", 1),
    "an open quote": (["run: train.py 'a"], "remediation-run", 1),
    "python in front": (["run: python train.py"], "remediation-run", 1),
    "a variable of the shell": (["run: STEPS=5 train.py"], "remediation-run", 1),
    "a script outside": (["run: ../train.py"], "remediation-run", 1),
    "arguments of a function": (["run: pkg.train:step --n 5"], "remediation-run", 1),
    "braces without a sweep": (["run: train.py --n {n}"], "remediation-run", 1),
    "braces in the script": (["run: train_{n}.py", "sweep: {n: [1]}"], "remediation-run", 1),
    "an unused variable": (["run: train.py", "sweep: {n: [1]}"], "remediation-run", 1),
    "an empty sweep": (["run: pkg:f", "sweep: {n: []}"], "remediation-run", 2),
    "too many points": (
        ["run: pkg:f", f"sweep: {{n: {[*range(101)]}, m: {[*range(10)]}}}"],
        "remediation-run",
        2,
    ),
    "points that differ": (["run: pkg:f", "sweep: [{n: 1}, {m: 1}]"], "remediation-run", 2),
    "a size that is no integer": (["run: pkg:f", "sweep: {n: [1, 2.5]}"], "remediation-type", 2),
    "a sweep beside a verifier": (["verifier: v.py", "sweep: {n: [1]}"], "remediation-run", 2),
    "within nothing": (["run: train.py", "within: step"], "remediation-run", 2),
    "a function as a revision": (["run: pkg:f", "variants: {found: pkg:f}"], "remediation-variant", 2),
    "results of a run": (["run: a.py", "claims:", "  x: {same_result_as: y}"], "remediation-run", 3),
    "deep nesting": (["claims:", "  found: " + "[" * 100_000], "remediation-yaml", 2),
    "a tag": (["claims:", "  f:", "    syncs: !!python/name:os.getcwd 1"], "remediation-type", 3),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake(finding: Finding, mistake: str) -> None:
    """Each mistake is one error on the line where it stands."""
    lines, rule, line = MISTAKES[mistake]
    reading = read(finding, *lines)
    assert [(rule, FENCE + line, Level.ERROR)] == [
        (problem.rule, problem.line, problem.level) for problem in reading.problems
    ]


@pytest.mark.parametrize(
    ("command", "kind", "target", "arguments"),
    [
        (
            r"""train.py --layers {n} '{n} of "it"' a\ b""",
            "script",
            "train.py",
            ("--layers", "{n}", '{n} of "it"', "a b"),
        ),
        ("bin/train {n}", "script", "bin/train", ("{n}",)),
        ("pkg.train --n={n} '|' {0}", "module", "pkg.train", ("--n={n}", "|", "{0}")),
        ("src/pkg/a.py:Trainer.step", "function", "src/pkg/a.py:Trainer.step", ()),
        ("pkg.train:step", "function", "pkg.train:step", ()),
        ("tests/test_a.py::test_b[{n}] -q", "test", "tests/test_a.py::test_b[{n}]", ("-q",)),
    ],
)
def test_a_command(
    finding: Finding, command: str, kind: str, target: str, arguments: tuple[str, ...]
) -> None:
    """What is run is split as a shell would, and keeps its braces and its text."""
    found = remediation(finding, f"run: {command}", "sweep: {n: [2, 1, 2]}")
    run = found.run
    assert run
    assert (command, kind, target, arguments) == (run.raw, run.kind, run.target, run.arguments)
    assert (FENCE + 1, ({"n": 2}, {"n": 1})) == (run.line, found.sweep)
    # Without variants, the code as found is that of the work tree.
    refs = found.variants.items()
    assert [("found", "@worktree", None)] == [(name, ref.raw, ref.revision) for name, ref in refs]


def test_a_sweep(finding: Finding) -> None:
    """Several variables give all combinations, a list its own points; variants are revisions."""
    command = "run: train.py {a} {b}"
    variants = 'variants: {found: "@4f1c2d0", fix: "@worktree"}'
    found = remediation(finding, command, "sweep: {a: [1, 2], b: [3, -4]}", "within: pkg.a:B.c", variants)
    assert [(1, 3), (1, -4), (2, 3), (2, -4)] == [(at["a"], at["b"]) for at in found.sweep]
    assert ["4f1c2d0", None] == [ref.revision for ref in found.variants.values()]
    assert "pkg.a:B.c" == found.within
    points = remediation(finding, command, "sweep: [{a: 1, b: 8}, {b: 9, a: 2}]").sweep
    assert ({"a": 1, "b": 8}, {"a": 2, "b": 9}) == points


def test_a_tab_is_named(finding: Finding) -> None:
    """YAML takes no tab for an indentation, and calls it a character: the hint says which and what to do."""
    (problem,) = read(finding, "claims:", "\tfound: {syncs: 1}").problems
    assert "indent with spaces: here is a tab" == problem.hint


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("## Remediation\n\n```\nclaims: {}\n```\n", 5),
        ("## Remediation\n\n```yaml\n```\n\n```yaml\n```\n", 10),
    ],
)
def test_exactly_one_block(finding: Finding, text: str, line: int) -> None:
    """A section with a block that is not marked as YAML, or with a second one, is an error."""
    assert [("remediation-block", line)] == finding(text).rules


def test_prose_is_a_recommended_fix(finding: Finding) -> None:
    """Below the same heading, audits say in words and code how to mend it."""
    reading = finding("## Remediation\n\nRead once:\n\n```python\nx = 1\n```\n")
    assert reading.ticket.remediation is None
    assert reading.ticket.recommended_fix
    assert reading.ticket.recommended_fix.raw.startswith("Read once:")
    assert [] == reading.rules


def test_lines_are_those_of_the_file(finding: Finding) -> None:
    """Carriage returns, and characters that end a line for YAML alone, shift no line number."""
    text = (
        "## Remediation\r\n\r\n```yaml\r\nunmeasured:\r\n  - {claim: a\u2028b, why: c}\r\nzzz: 1\r\n```\r\n"
    )
    # The four lines above the section end in LF alone.
    assert [("line-ends", 1), ("remediation-key", FENCE + 3)] == finding(text).rules
