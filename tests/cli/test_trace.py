"""``tickets trace``: lines of a recorded run and how long the host waited, beside a probe, as a ticket."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tests.simcuda.real.events import kernel, memcpy, operation, runtime

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Git, Repository

Tickets = Callable[..., "Ran"]
SCHEMA = Path(__file__).parents[2] / "docs/report.schema.json"
CODE = """\
def step(loss):
    value = loss.item()
    return value
"""
EXACT = {"Call stack": "train.py(2): step;train.py(9): <module>"}
STEP = {
    "ph": "X",
    "cat": "python_function",
    "name": "train.py(1): step",
    "pid": 1,
    "tid": 1,
    "ts": 50,
    "dur": 300,
}


def written(repository: Repository, name: str, *more: dict[str, Any], **arguments: Any) -> str:
    """Write a trace of a read of a scalar, which waits for 2 microseconds, and of a multiplication."""
    ops = [operation("aten::item", 100, 1), operation("aten::mul", 200, 2)]
    for each in ops:
        each["args"] |= arguments
    events = [
        *ops,
        runtime("cudaMemcpyAsync", 110, 10, op=1),
        memcpy("Memcpy DtoH (Device -> Pinned)", 112, 10, 4),
        runtime("cudaStreamSynchronize", 120, 11, op=1),
        runtime("cudaLaunchKernel", 210, 12, op=2),
        kernel(212, 12),
        *more,
    ]
    device = [{"name": "NVIDIA H100"}]
    data = {"deviceProperties": device, "cuda_runtime_version": 12040, "traceEvents": events}
    return str(repository.write(name, json.dumps(data)))


def probe(repository: Repository, *sites: tuple[str, int, str, str]) -> str:
    """Write the JSON of a probe that found these sites, each 5 times."""
    names = ("file", "line", "function", "what")
    data = [{"sites": [dict(zip(names, site, strict=True)) | {"values": [5], "law": None} for site in sites]}]
    return str(
        repository.write("probe.json", json.dumps({"schema_version": 1, "kind": "probe", "data": data}))
    )


def sha256(file: str) -> str:
    """The digest of a file, as ``sha256sum`` prints it."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


@pytest.fixture
def exact(repository: Repository) -> str:
    """A trace that names lines."""
    repository.write("train.py", CODE)
    return written(repository, "exact.json", **EXACT)


def test_the_lines_of_a_recorded_run(exact: str, tickets: Tickets) -> None:
    """The table is that of a probe, from the recorded GPU, with the time of the waits."""
    shown = tickets("trace", exact, "--lines").out
    assert f"{exact}  recorded NVIDIA H100, CUDA 12.4\n" in shown
    # The wait takes 2 microseconds.
    assert "train.py:2  waits 1x for 0.002 ms, copies d2h 1x  value = loss.item()" in shown
    assert "in all: syncs 1, d2h 1, launches 1" in shown


def test_json_of_a_trace(exact: str, tickets: Tickets) -> None:
    """The sites of a probe, with the microseconds that each waited, and what was added up."""
    (item,) = tickets("trace", exact, "--lines", "--format", "json").data
    assert item["agreement"] is None
    assert ("NVIDIA H100, CUDA 12.4", 2, True, None) == (
        item["device"],
        item["calls"],
        item["has_lines"],
        item["beside"],
    )
    assert [("stream_syncs", 2, 2.0, 0), ("d2h", 2, 0.0, 4)] == [
        (site["what"], site["line"], site["waited"], site["bytes"]) for site in item["sites"]
    ]
    assert (None, sha256(exact)) == (item["draft"], item["sha256"])
    assert "launches 1, with their kernel 1" in item["sums"]


def test_beside_a_probe(exact: str, repository: Repository, tickets: Tickets) -> None:
    """Lines that agree are apart from those that only one has; hazards no trace can have."""
    other = probe(
        repository,
        ("src/train.py", 2, "Model.step", "stream_syncs"),
        ("train.py", 3, "step", "h2d"),
        ("train.py", 3, "step", "hazards"),
        ("train.py", 3, "step", "allocations"),
    )
    (item,) = tickets("trace", exact, "--lines", "--beside", other, "--format", "json").data
    assert [("stream_syncs", 1, "5"), ("d2h", 1, None), ("h2d", None, "5")] == [
        (each["what"], each["recorded"], each["probed"]) for each in item["beside"]
    ]
    shown = tickets("trace", exact, "--lines", "--beside", other).out
    assert "both (1)\n    train.py:2  step  waits  recorded 1x, probed 5x\n" in shown.replace(
        "\n  ", "\n    "
    )


def test_functions_without_lines(repository: Repository, tickets: Tickets) -> None:
    """Newer traces name functions: all lines of one are then one place, and the table says so."""
    repository.write("train.py", CODE)
    file = written(repository, "functions.json", STEP)
    other = probe(repository, ("train.py", 2, "step", "d2h"), ("train.py", 3, "step", "d2h"))
    (item,) = tickets("trace", file, "--lines", "--beside", other, "--format", "json").data
    assert ("d2h", 0, 1, "5 + 5") == tuple(
        item["beside"][0][key] for key in ("what", "line", "recorded", "probed")
    )
    shown = tickets("trace", file, "--lines").out
    assert "train.py:1  waits 1x for 0.002 ms, copies d2h 1x  def step(loss):" in shown
    assert "a line is where its function begins" in shown


def test_a_trace_without_stacks(repository: Repository, tickets: Tickets) -> None:
    """There are totals and no lines, and the way to record them is named."""
    shown = tickets("trace", written(repository, "bare.json"), "--lines").out
    assert "no lines: recorded without with_stack=True\n  in all: syncs 1, d2h 1, launches 1" in shown


def test_a_refused_trace_keeps_no_other_back(exact: str, repository: Repository, tickets: Tickets) -> None:
    """Each rank is a file: what is wrong with one is said, the others are shown, and the exit code is 4."""
    cut = str(repository.write("cut.json", '{"traceEvents": [{"ph"'))
    ran = tickets("trace", cut, exact, "--lines")
    assert (4, True) == (ran.code, "recorded NVIDIA H100" in ran.out)
    assert f"error: {cut}: cut or damaged after 0 events" in ran.err


@pytest.mark.parametrize(
    "text", ["", "{}", '{"kind": "list", "data": [{"sites": []}]}', '{"kind": "probe", "data": []}']
)
def test_beside_something_else(text: str, exact: str, repository: Repository, tickets: Tickets) -> None:
    """What is no probe's JSON is refused, and the command that makes it is named."""
    ran = tickets("trace", exact, "--beside", str(repository.write("other.json", text)))
    assert (4, True) == (ran.code, "tickets probe TARGET --format json" in ran.err)


def test_the_simulation_beside_a_trace(repository: Repository, tickets: Tickets) -> None:
    """Below the lines stands whether replays agree: a multiplication is one launch, here and there."""
    arguments = {
        "Input Dims": [[4], [4]],
        "Input type": ["float", "float"],
        "Input Strides": [[1], [1]],
        "Concrete Inputs": ["", ""],
    }
    mul = operation("aten::mul", 300, 3)
    mul["args"] |= arguments
    file = written(repository, "mul.json", mul, runtime("cudaLaunchKernel", 310, 20, op=3), kernel(312, 20))
    (item,) = tickets("trace", file, "--format", "json").data
    launches = [each for each in item["agreement"]["findings"] if each["metric"] == "launches"]
    # The other two calls have no shapes.
    assert [("aten::mul", "confirmed", 1)] == [
        (each["op"], each["verdict"], each["count"]) for each in launches
    ]
    assert "replayed 1 distinct calls of 1 ops; 2 not" in tickets("trace", file).out


RECORDING = "evidence/T-01/recorded-nvidia-h100-cuda-12.4.intoto"


@pytest.fixture
def drafted(exact: str, tickets: Tickets, repository: Repository) -> Path:
    """What is recorded beside a ticket that was drafted from the first line."""
    assert 0 == tickets("trace", exact, "--lines", "--draft", "1").code
    return repository.root / RECORDING


def test_a_draft(exact: str, tickets: Tickets, repository: Repository) -> None:
    """The ticket has the line, what was recorded of it and of the whole trace, and by which file."""
    ran = tickets(
        *("trace", exact, "--lines", "--draft", "train.py:2", "--severity", "p1", "--format", "json")
    )
    assert {"id": "T-01", "files": ["tickets/T-01.md", RECORDING]} == ran.data[0]["draft"]
    assert "a trace gives no verdict: say in the ticket what to run (docs/verifiers.md)," in ran.err
    (item,) = tickets("list", "--format", "json").data
    assert ("step waits for the GPU in train.py:2", "P1") == (item["title"], item["severity"])
    assert [{"file": "train.py", "lines": [[2, 2]], "symbol": "step"}] == item["locations"]
    text = (repository.root / "tickets/T-01.md").read_text(encoding="utf-8")
    # Of the whole trace, the multiplication is the launch.
    for said in (
        "recorded on NVIDIA H100, CUDA 12.4 that `train.py:2` waits for the GPU once, for 0.002 ms, over the",
        f"```python\n# train.py:1-3\n{CODE}```\n",
        "| `stream_syncs` | 1 |  | 0.002 |\n| `d2h` | 1 | 4 |  |\n",
        "`syncs` 1, `launches` 1, `d2h` 1, `d2h_bytes` 4.",
        f"The trace is `exact.json`, SHA-256 `{sha256(exact)}`.",
        "- [ ] A Remediation names what to run, so that it can be verified\n",
    ):
        assert said in text
    # What is left to do is a note, and no problem.
    assert [("note", "missing-remediation")] == [
        (each["level"], each["rule"]) for each in tickets("lint", "--format", "json").data
    ]


@pytest.mark.usefixtures("drafted")
def test_what_was_recorded_is_shown(exact: str, tickets: Tickets, repository: Repository) -> None:
    """``show`` and ``report`` have it apart from the verdict, and say when the code has changed."""
    said = "stream_syncs 1 for 0.002 ms, d2h 1 of 4 bytes at train.py:2, over all of exact.json"
    shown = tickets("show", "T-01").out
    assert "P2 · open · tickets/T-01.md\nunverified\n" in shown
    assert f"Recorded\n  recorded on NVIDIA H100, CUDA 12.4: {said}\n" in shown
    repository.write("train.py", CODE + "\n")
    assert f"{said}; train.py has changed since the ticket was written" in tickets("show", "T-01").out
    ((item,),) = (each["recorded"] for each in tickets("show", "T-01", "--format", "json").data)
    assert ("exact.json", sha256(exact), True) == (item["trace"], item["sha256"], item["has_changed"])
    report = tickets("report", "--format", "json").envelope
    jsonschema.validate(report, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert [item] == report["data"][0]["recorded"]
    assert said in tickets("report", "--format", "html").out


@pytest.mark.usefixtures("drafted")
def test_what_was_recorded_decides_nothing(tickets: Tickets, repository: Repository, git: Git) -> None:
    """No verdict comes of it, nothing is stale by it, it closes no ticket, and the gate is not opened."""
    assert "unverified" == tickets("list", "--format", "json").data[0]["verdict"]
    assert "T-01  unverified: it has no verifier\n" == tickets("verify", "T-01").out
    assert (0, True) == (tickets("verify", "--stale").code, "0 of 0" in tickets("verify", "--stale").err)
    git("add", "-A")
    git("commit", "-qm", "first")
    ticket = repository.root / "tickets/T-01.md"
    ticket.write_text(ticket.read_text(encoding="utf-8").replace("`open`", "`fixed`"), encoding="utf-8")
    assert "closed-without-evidence" in tickets("lint").out
    ran = tickets("check", "--base", "HEAD")
    assert (1, True) == (ran.code, "closed as fixed, and its verdict is unverified" in ran.out)


def test_a_recording_is_no_verification(drafted: Path, tickets: Tickets) -> None:
    """Under the name of one it is refused; and a verification is no recording, by whatever name."""
    recorded = drafted.read_bytes()
    other = drafted.with_name("simulated-torch2.13.0-h200-cuda13.json")
    drafted.rename(other)
    ran = tickets("show", "T-01")
    assert (4, True) == (ran.code, "is no evidence: it is no in-toto Statement of a test result" in ran.err)
    other.unlink()
    # The same numbers, as a test that has passed.
    drafted.write_bytes(
        recorded.replace(
            b"urn:finding-tickets:recorded:v1", b"https://in-toto.io/attestation/test-result/v0.1"
        )
    )
    ran = tickets("show", "T-01")
    assert (4, True) == (ran.code, f"{RECORDING}: is no recording: it is no in-toto Statement" in ran.err)
    assert "unverified" == tickets("list", "--format", "json").data[0]["verdict"]


def test_an_edited_recording_is_found_out(drafted: Path, tickets: Tickets) -> None:
    """Another number is not that of the digest: ``show``, ``lint`` and ``report`` say so."""
    drafted.write_bytes(drafted.read_bytes().replace(b'"count": 1', b'"count": 9', 1))
    ran = tickets("show", "T-01")
    assert (4, True) == (ran.code, f"{RECORDING}: is no recording: it was edited" in ran.err)
    assert "unreadable-evidence" in tickets("lint").out
    assert 4 == tickets("report").code


def test_a_draft_about_a_function(repository: Repository, tickets: Tickets) -> None:
    """Where the trace names no lines, the ticket names none, and says so."""
    repository.write("src/train.py", CODE)
    assert 0 == tickets("trace", written(repository, "functions.json", STEP), "--lines", "--draft", "1").code
    (item,) = tickets("list", "--format", "json").data
    # The entry of sys.path that the trace cuts off may be src.
    assert "step waits for the GPU in src/train.py" == item["title"]
    assert [{"file": "src/train.py", "lines": [], "symbol": "step"}] == item["locations"]
    text = (repository.root / "tickets/T-01.md").read_text(encoding="utf-8")
    assert "It names no lines: these are the counts of the whole function." in text
    assert "d2h 1 of 4 bytes at step in train.py, over all" in tickets("show", "T-01").out


@pytest.mark.parametrize(
    ("stack", "title"),
    [
        (
            "/x/site-packages/acc/__init__.py(7): __init__",
            "__init__ waits for the GPU in /x/site-packages/acc/__init__.py:7",
        ),
        ("../../outside.py(1): step", "step waits for the GPU in ../../outside.py:1"),
        ("", "aten::item waits for the GPU in code without Python"),
    ],
)
def test_a_draft_about_code_elsewhere(
    stack: str, title: str, repository: Repository, tickets: Tickets
) -> None:
    """There is no location and nothing is quoted: a trace may name any file of any machine."""
    (repository.root.parents[1] / "outside.py").write_text("secret = 1\n", encoding="utf-8")
    more = [{**STEP, "ts": 900}] if not stack else []
    file = written(repository, "x.json", *more, **({"Call stack": stack} if stack else {}))
    assert 0 == tickets("trace", file, "--lines", "--draft", "1").code
    (item,) = tickets("list", "--format", "json").data
    assert (title, []) == (item["title"], item["locations"])
    assert "```" not in (repository.root / "tickets/T-01.md").read_text(encoding="utf-8")
    assert 0 == tickets("lint").code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--draft", "2"), "--draft 2: there is no such line (1 to 1, or file:line)"),
        (("--draft", "train.py:3"), "--draft train.py:3: there is no such line"),
        (("--draft", "1", "--severity", "x"), "--severity x: no such severity"),
        (("--agent", "PT"), "--agent: for a ticket that --draft SITE writes"),
        (("--draft", "1", "other.json"), "--draft is about a line of one trace"),
    ],
)
def test_a_draft_that_cannot_be(
    arguments: tuple[str, ...], message: str, exact: str, repository: Repository, tickets: Tickets
) -> None:
    """Wrong usage ends with 2, and nothing is written."""
    ran = tickets("trace", exact, "--lines", *arguments)
    assert (2, True) == (ran.code, message in ran.err)
    assert [[], False] == [
        list((repository.root / "tickets").iterdir()),
        (repository.root / "evidence").exists(),
    ]


def test_no_draft_without_lines(repository: Repository, tickets: Tickets) -> None:
    """A trace without stacks says how to record them; one that is refused ends as it does without a draft."""
    ran = tickets("trace", written(repository, "bare.json"), "--lines", "--draft", "1")
    assert (2, True) == (ran.code, "the trace has no lines (record it with_stack=True)" in ran.err)
    cut = str(repository.write("cut.json", "{"))
    assert 4 == tickets("trace", cut, "--draft", "1").code
    assert [] == list((repository.root / "tickets").iterdir())
