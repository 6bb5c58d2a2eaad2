"""``tickets probe``: a table, JSON, and tickets drafted from a line, which pass lint and can be verified."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Git, Repository

from finding_tickets.errors import UsageError
from finding_tickets.register.config import Config
from finding_tickets.register.load import Register
from finding_tickets.register.new import Draft
from finding_tickets.report.probe import draft_of_site, probe_lines, site_of
from finding_tickets.report.templates import Attached
from finding_tickets.report.text import plainly
from finding_tickets.verify.probing import CallingLine, Probed, ProbedCost, ProbedSite, ProbeRequest

CODE = """\
import torch


def norms(n):
    total = 0.0
    for tensor in [torch.ones(8, device="cuda") for _ in range(n)]:
        total += tensor.norm().item()
    return total


def named(*, n):
    return norms(n)


def broken(n):
    norms(n)
    raise ValueError("no")


def on_a_second():
    torch.ones(1, device="cuda:1")
"""
LOOP = """\
import sys

from pkg.mod import norms


def step(n):
    norms(n)


for _ in range(3):
    step(int(sys.argv[1]))
assert sys.argv[2] == "a b"
"""
LATE = """\
import atexit, sys, torch

x = torch.ones(4, device="cuda")
atexit.register(lambda: print(x.sum().item()))


@atexit.register
def end():
    x.max().item()


sys.exit(0)
"""
TEST = """\
import pytest
from pkg.mod import norms


@pytest.mark.parametrize("n", [1, 2])
def test_it(n):
    norms(n)
"""
SIMULATED = ("--meter", "simulated")
SWEEP = ("--sweep", "n=1,2,3,5", *SIMULATED)


@pytest.fixture
def _code(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write("src/pkg/mod.py", CODE)
    repository.write("src/pkg/__init__.py", "")
    repository.write("train.py", "from pkg.mod import norms\n\nnorms(3)\n")
    monkeypatch.chdir(repository.root)


@pytest.mark.usefixtures("_code")
def test_the_table(tickets: Tickets) -> None:
    """A row for each line of code that waits, with its copy and its law, and the laws of the whole run.

    ones and norm allocate and launch once each per tensor: lines that only allocate are counted.
    """
    ran = tickets("probe", "pkg.mod:norms", *SWEEP)
    assert [
        "  1  src/pkg/mod.py:7  waits n times, copies d2h  total += tensor.norm().item()",
        "  and 1 line that only allocates: -v",
        "  in all: syncs n, d2h n, launches 2*n, peak_bytes 32*n + 4",
    ] == ran.out.splitlines()[1:]
    assert (0, "") == (ran.code, ran.err)
    lines = tickets("probe", "pkg.mod:norms", *SWEEP, "-v").out.splitlines()
    whole = "  1  src/pkg/mod.py:7  waits n times, copies d2h, allocates  total += tensor.norm().item()"
    assert whole == lines[1]
    assert ["2", "src/pkg/mod.py:6", "allocates", "n", "times"] == lines[2].split()[:5]
    assert ["d2h_bytes", "4*n"] in [line.split() for line in lines]


@pytest.mark.usefixtures("_code")
def test_operations_and_what_they_rest_on(tickets: Tickets, repository: Repository) -> None:
    """With -v, of both tests together: 1 + 2 norms, each made and read once, and two explicit waits."""
    repository.write("test_it.py", f"import torch\n{TEST}    torch.cuda.synchronize()\n")
    lines = tickets("probe", "test_it.py::test_it", "-v", *SIMULATED).out.splitlines()
    rows = [line.split() for line in lines[lines.index("  operations") + 2 :]]
    # The read of a value is by far the most recorded wait; PyTorch's samples run all three.
    assert "aten._local_scalar_dense.default drains 3, syncs 3, d2h 3" == " ".join(rows[0][:7])
    assert ["read,", "recorded,", "tested"] == rows[0][7:10]
    assert "tested" == rows[0][-1]
    # The first tensor asks the driver for memory.
    assert "aten.ones.default implicit_syncs 1, launches 3 read," == " ".join(rows[1][:6])
    assert "aten.linalg_vector_norm.default launches 3 read," == " ".join(rows[2][:4])
    assert ["no", "operation", "drains", "2,", "syncs", "2"] == rows[3][:6]


LIBRARY = """\
def total(tensors):
    return [each.item() for each in tensors]
"""
TRAINING = """\
import sys

import torch

sys.path.insert(0, sys.path[0] + "/lib/site-packages")
from library import total

weight = sum(torch.ones(4) for _ in "1").cuda()
for step in range(3):
    losses = [weight.sum()]
    total(
        losses,
    )
torch.cuda.synchronize()
"""


@pytest.mark.usefixtures("_code")
def test_loops_and_calls_of_libraries(tickets: Tickets, repository: Repository) -> None:
    """What a script does once stands apart; below a line of a package is who called it, in one line.

    What waits beside a generator expression is outside its loop. No row is wider than 80 columns.
    """
    repository.write("lib/site-packages/library.py", LIBRARY)
    repository.write("loop.py", TRAINING)
    ran = tickets("probe", "loop.py", *SIMULATED)
    assert [
        "  in loops",
        # 80 columns, of which the others take 2 + 1 + 2 + 12 + 2 + 20 + 2: 39 are left.
        "  1  library.py:2  waits 3x, copies d2h  return [each.item() for each in tensor…",
        "     loop.py:11    called from here      total(losses)",
        "  once, outside loops",
        '  2  loop.py:8   waits 1x, copies h2d     weight = sum(torch.ones(4) for _ in "…',
        "  3  loop.py:14  waits for the device 1x  torch.cuda.synchronize()",
    ] == ran.out.splitlines()[1:7]
    assert max(map(len, ran.out.splitlines())) <= 80
    (item,) = tickets("probe", "loop.py", *SIMULATED, "--format", "json").data
    # The first line drains, waits and copies.
    assert [1, 1, 1, 2, 2] == [each["number"] for each in item["sites"]][:5]
    caller = {"file": "loop.py", "line": 11, "function": "<module>", "statement": "total(losses)"}
    assert [caller] == item["sites"][0]["called_from"]


HIDDEN = """\
import torch

model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 8), 1).cuda()
for _ in range(2):
    model(torch.ones(4, 1, 8).cuda(), mask=torch.ones(4, 4, device="cuda").triu(1).bool())
"""


@pytest.mark.usefixtures("_code")
def test_where_a_wait_hides_in_torch(tickets: Tickets, repository: Repository) -> None:
    """An encoder looks at its mask whenever it is called; the line waits for its copy as well."""
    repository.write("hidden.py", HIDDEN)
    rows = tickets("probe", "hidden.py", *SIMULATED).out.splitlines()
    assert "1  hidden.py:5  waits 4x, copies " in rows[2]
    assert "waits in _detect_is_causal_mask, " in " ".join(rows[3].split())


@pytest.mark.slow
@pytest.mark.usefixtures("_code")
@pytest.mark.parametrize(
    ("words", "waits"),
    [
        (("train.py",), "3"),
        (("loop.py", "--within", "loop.py:step", "--", "2", "a b"), "2"),
        (("loop", "--", "2", "a b"), "6"),
        (("tests/test_it.py::test_it[2]",), "2"),
        (("pkg.mod:named", *SWEEP), "n"),
    ],
)
def test_every_draft_can_be_verified(
    tickets: Tickets, repository: Repository, words: tuple[str, ...], waits: str
) -> None:
    """A script with its arguments, a function in it, a module, a test: run as probed, with claims that hold.

    A step waits as often as the first argument says, and there are three. Nothing is committed: what was
    found is the work tree, which is said.
    """
    repository.write("loop.py", LOOP)
    repository.write("tests/test_it.py", TEST)
    # The tests' process for measuring was started in another folder.
    words = tuple(word.replace("tests/", f"{repository.root}/tests/") for word in words)
    ran = tickets("probe", *SIMULATED, "--draft", "1", *words)
    assert "created T-01: tickets/T-01.md\nfound is the work tree, for " in ran.err
    assert [] == tickets("lint", "--format", "json").data
    (verification,) = tickets("verify", "T-01", *SIMULATED, "--format", "json").data
    assert "reproduced" == verification["verdict"]
    assert [("found.syncs", waits, True)] == [
        (claim["id"], claim["claimed"], claim["holds"]) for claim in verification["claims"]
    ]


COMPILED = """\
import torch


@torch.compile
def step(x):
    return (x * 2).sum().item()


step(torch.ones(8, device="cuda"))
"""


@pytest.mark.usefixtures("_code")
@pytest.mark.slow
def test_compiled_code_of_a_script(tickets: Tickets, repository: Repository) -> None:
    """It runs eagerly, which is said, or not at all."""
    repository.write("compiled.py", COMPILED)
    ran = tickets("probe", "compiled.py", *SIMULATED)
    assert (0, True) == (ran.code, "modelled: torch.compile, run eagerly\n" in ran.err)
    assert "compiled.py:6  waits 1x, copies d2h  return (x * 2).sum().item()" in ran.out
    refused = tickets("probe", "compiled.py", *SIMULATED, "--compile", "refuse")
    assert (3, True) == (
        refused.code,
        "compiled.py:4: NotSimulatedError: torch.compile does not run" in refused.out,
    )


@pytest.mark.usefixtures("_code")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("pkg.mod:broken", *SWEEP), 3, "not run to its end: at n=1: src/pkg/mod.py:17: "),
        (("pkg.mod:on_a_second",), 3, "invalid device ordinal; --devices gives the target more devices"),
        (("pkg.mod:broken", *SWEEP, "--draft", "1"), 2, "did not finish"),
        (("pkg.mod:norms", *SWEEP, "--draft", "9"), 2, "--draft 9: there is no such line (1 to 2, "),
        (("pkg.mod:norms", *SWEEP, "--draft", "0"), 2, "--draft 0: there is no such line"),
        (("pkg.mod:norms", *SWEEP, "--draft", "1", "--severity", "x"), 2, "--severity x: no such severity"),
        (("pkg.mod:norms", *SWEEP, "--title", "x"), 2, "--title: for a ticket that --draft SITE writes"),
        (("pkg.mod:norms", "--sweep", "n=1", "--meter", "cuda"), 3, "not measured: no real GPU"),
    ],
)
def test_how_it_ends(
    tickets: Tickets, repository: Repository, arguments: tuple[str, ...], code: int, message: str
) -> None:
    """Wrong usage ends with 2, what cannot be measured with 3; the message says why; nothing is written."""
    ran = tickets("probe", *arguments)
    assert (code, True) == (ran.code, message in ran.out + ran.err)
    assert [] == list((repository.root / "tickets").iterdir())


def site(what: str = "allocations", file: str = "a.py", line: int = 2) -> ProbedSite:
    """A site that counts 3 and then 5."""
    return ProbedSite(file, line, "f", what, "x = `y`", ProbedCost((3, 5), None, "no law, 3..5"))


def made_up(*sites: ProbedSite) -> Probed:
    """A probe of a function at two points."""
    return Probed(
        target="a:f",
        kind="function",
        meter="simulated",
        torch="2.13.0",
        device="h200-cuda13",
        points=({"n": 1}, {"n": 2}),
        metrics={"allocations": ProbedCost((3, 5)), "peak_bytes": ProbedCost((64, 64), "64")},
        sites=sites,
        errors=(),
        not_measured=(),
        unknown=(),
        approximate=(),
        printed=0,
        function="a.py:f",
        files=("a.py",),
    )


def draft_of(probed: Probed, root: Path) -> tuple[Draft, Attached]:
    """The ticket about the first site; its file is there unless the test wrote another one."""
    if not (root / "a.py").exists():
        (root / "a.py").write_text("def f():\n    x = y\n    z = y\n")
    register = Register(root, Config())
    wanted = ProbeRequest(target="a:f", root=root, timeout=60, memory=1 << 30)
    return draft_of_site(wanted, probed, probed.sites[0], register, {}, None)


@pytest.mark.usefixtures("_code")
def test_what_a_script_does_as_it_ends_counts(tickets: Tickets, repository: Repository) -> None:
    """Functions that it registered run within the measurement, also after sys.exit."""
    repository.write("late.py", LATE)
    (found,) = tickets("probe", "late.py", *SIMULATED, "--format", "json").data
    waits = sorted(each["line"] for each in found["sites"] if each["what"] == "stream_syncs")
    assert [4, 9] == waits


def test_long_laws_and_places() -> None:
    """A cost that leaves no room for the code goes on below; a place is whole, so that it can be pasted."""
    law = ProbedCost((3, 5), "17*layers + 12*parameters + 7")
    long = replace(site("stream_syncs", "a/" * 10 + "b.py"), cost=law, statement="total += " + "x" * 90)
    probed = made_up(long, replace(site("d2h", line=3), cost=ProbedCost((4, 4), "4"), statement="x.cpu()"))
    lines = "\n".join(probe_lines(probed, plainly, 80)).split("\n")
    place = "a/" * 10 + "b.py:2"
    # 80 columns, less 2 of indentation, the number, 26 and 31 of the columns between and 3 gaps: 14 for code.
    assert f"  1  {place}  waits 17*layers + 12*parameters  total += xxxx…" == lines[1]
    assert lines[2].strip() == "+ 7 times"
    assert f"  2  {'a.py:3':<26}  {'copies d2h 4x':<31}  x.cpu()" == lines[3]


def test_options_of_the_script_follow_two_dashes(tickets: Tickets) -> None:
    """Where they were typed as for Python, the message says so."""
    ran = tickets("probe", "train.py", "--steps", "6")
    assert (2, True) == (ran.code, "follow --: tickets probe train.py -- --steps 5" in ran.err)


def test_a_line_of_an_installed_package(tmp_path: Path) -> None:
    """No statement of the repository is known to lead there that a ticket could be about."""
    with pytest.raises(UsageError, match=r"library/x\.py:2 is no statement"):
        draft_of(made_up(site(file="library/x.py")), tmp_path)


def test_a_line_that_leads_to_an_installed_package(tmp_path: Path) -> None:
    """The ticket names the package, its version and the path within it."""
    (tmp_path / "a.py").write_text("import torch\n\nf()\n")
    caller = CallingLine("a.py", 3, "<module>", "f()")
    probed = made_up(replace(site(file="torch/functional.py", line=7), called_from=(caller,)))
    draft, _ = draft_of(probed, tmp_path)
    torch = version("torch")
    assert f"line 7 of `torch/functional.py` of torch {torch}, called from `a.py:3`" in draft.description


def test_what_was_measured_stands_in_a_table(tmp_path: Path) -> None:
    """A line for each point, and the laws; the command by which anybody measures it again."""
    probed = made_up(site())
    draft, _ = draft_of(probed, tmp_path)
    assert [
        "Measured by `tickets probe a:f` on a simulated device (h200-cuda13), torch 2.13.0:",
        "",
        "| n | allocations of the statement | allocations of the run |",
        "|---:|---:|---:|",
        "| 1 | 3 | 3 |",
        "| 2 | 5 | 5 |",
        "| law | `3..5` | `3` |",
    ] == draft.description.split("\n")[1:]


def test_a_comprehension_is_in_its_function(tmp_path: Path) -> None:
    """Where Python calls the code after its form, the ticket names the function that is written around it."""
    (tmp_path / "a.py").write_text("def outer(xs):\n    return [x.item() for x in xs]\n")
    probed = made_up(
        replace(site("stream_syncs"), function="<listcomp>", statement="return [x.item() for x in xs]")
    )
    draft, _ = draft_of(probed, tmp_path)
    assert "`return [x.item() for x in xs]` waits for the GPU in outer" == draft.title
    assert ["outer"] == [place.symbol for place in draft.locations]


def test_sites_by_line() -> None:
    """Of several sites on a line, the first and heaviest one is meant; the line has one number."""
    probed = made_up(site("d2h"), site(), site(line=3))
    assert probed.sites[0] is site_of(probed, "a.py:2")
    assert probed.sites[2] is site_of(probed, "2")


HALVING = """\
import torch

parts = [torch.ones(4, device="cuda") for _ in range(3)]
for step in range(10):
    for part in parts:
        part.mul_(0.5)
print(parts[0].sum().item())
"""
SCALING = "    for part in parts:\n        part.mul_(0.5)\n"


@pytest.mark.slow
@pytest.mark.usefixtures("_code")
def test_a_draft_about_another_cost_than_waits(tickets: Tickets, repository: Repository, git: Git) -> None:
    """It is about the whole run. A fix must cost less by it, and says what it costs more otherwise."""
    repository.write("train.py", HALVING)
    git("add", ".")
    git("commit", "-qm", "first")
    draft = ("--draft", "launches", "--severity", "p1")
    assert 0 == tickets("probe", "train.py", *SIMULATED, *draft).code
    # A kernel fills each of the 3 tensors, 10 steps have one for each, and the last line has one.
    text = (repository.root / "tickets/T-01.md").read_text()
    assert '  found: {launches: 34}\n  fix: {launches: "< 34"}\n' in text
    assert "| **Severity** | `P1` |\n" in text
    assert [] == tickets("lint", "--format", "json").data
    repository.write("train.py", HALVING.replace("mul_(0.5)", "div_(2)"))
    done = tickets("fix", "T-01")
    assert (1, True) == (done.code, "fix.launches: claimed < 34, measured 34 (change" in done.err), done.err
    assert text == (repository.root / "tickets/T-01.md").read_text()
    once = "    torch._foreach_mul_(parts, 0.5)\n    more = torch.ones(64, device='cuda')\n"
    repository.write("train.py", HALVING.replace(SCALING, once))
    done = tickets("fix", "T-01")
    # A step has a kernel for all parts and one for the other tensor: 3 + 10*2 + 1. The peak was 3*16 bytes of
    # parts, and 4 of the sum.
    said = "verified: every claim about found and fix holds; costs more otherwise: peak_bytes 52 -> "
    assert (0, True, True) == (done.code, said in done.out, "launches  34 -> 24" in done.out), done.out


@pytest.mark.slow
@pytest.mark.usefixtures("_code")
def test_the_evidence_of_a_draft_is_small(tickets: Tickets, repository: Repository, git: Git) -> None:
    """At most 4 kB, of a program with twelve modules of its own, each of which waits in a loop."""
    layer = "import torch\n\nmodel = torch.nn.Linear(8, 8, device='cuda')\n\n\ndef step(values):\n    {}\n"
    waiting = layer.format("return model(values) if values.isfinite().all() else values")
    lines = ["import torch\n"]
    for number in range(12):
        repository.write(f"layers/layer_{number}.py", waiting)
        lines.append(f"from layers import layer_{number}\n")
    lines += ["values = torch.ones(2, 8, device='cuda')\n", "for _ in range(3):\n"]
    lines += [f"    values = layer_{number}.step(values)\n" for number in range(12)]
    repository.write("train.py", "".join(lines))
    git("add", ".")
    git("commit", "-qm", "first")
    assert 0 == tickets("probe", "train.py", *SIMULATED, "--draft", "layers/layer_7.py:7").code
    repository.write("layers/layer_7.py", layer.format("return model(values)"))
    assert 0 == tickets("fix", "T-01").code
    (file,) = (repository.root / "evidence/T-01").glob("*.json")
    facts = file.read_text()
    assert 4096 >= len(facts.encode()), facts
    assert 13 == facts.count('["input", "file", ')


LOGGED = """\
import torch


def score(x):
    total = x.sum().item()
    return total + x.max().item()


def run():
    x = torch.ones(4, device="cuda")
    for step in range(3):
        score(x)
    print(x.mean().item())
STEPS

run()
""".replace("STEPS\n", "    step = 0\n" * 7 + "\n")
FOUND = "# {}: It waits\n\n- Severity: High\n- Status: Open\n- Location: {}\n\nToo long.\n"


@pytest.mark.usefixtures("_code")
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("log.py:5", "is about log.py:5"),
        # The line of the definition stands for its function, also where the wait is near.
        ("log.py:9", "is about log.py:13"),
        (
            "src/log.py:9-12",
            "nothing waits or copies in this run where T-06 says (--draft FILE:LINE says which: log.",
        ),
        # A line of the function that waits for nothing, which is not its definition.
        ("log.py:19", "nothing waits or copies in this run where T-06 says"),
        ("log.py:400", "nothing waits or copies in this run where T-06 says (--draft FILE:LINE says"),
        ("`run` in `log.py`", "is about log.py:13"),
        ("`run`", "is about log.py:13"),
        ("log.py\n\n## Summary\nThe mean is read in `run`.\n", "is about log.py:13"),
        (
            "score in log.py",
            "several statements wait or copy in this run where T-06 says (--draft FILE:LINE says which: ",
        ),
    ],
)
def test_a_run_for_a_ticket_that_is_there(
    tickets: Tickets, repository: Repository, place: str, said: str
) -> None:
    """Its place is the statement that costs something, nearest to the line or in the function that it names.

    Lines 9 to 12 only make room for the tensor that line 13 reads.
    """
    repository.write("log.py", LOGGED)
    text = FOUND.format("T-06", place)
    repository.write("tickets/T-06.md", text)
    ran = tickets("probe", "log.py", *SIMULATED, "--for", "t-06")
    assert said in ran.err, ran.err
    after = (repository.root / "tickets/T-06.md").read_text()
    if "is about" not in said:
        assert (2, text) == (ran.code, after)
        return
    # Nothing but the section is new, and it is measured as it says.
    assert (0, True) == (ran.code, after.startswith(text))
    (item,) = tickets("verify", "T-06", *SIMULATED, "--format", "json").data
    assert "reproduced" == item["verdict"]
    again = tickets("probe", "log.py", "--for", "T-06", "--draft", "log.py:6")
    assert (2, True) == (
        again.code,
        "T-06 says already how it is measured (tickets verify T-06)" in again.err,
    )


@pytest.mark.usefixtures("_code")
def test_a_named_statement_for_a_ticket(tickets: Tickets, repository: Repository) -> None:
    """What the ticket does not tell, the command line does; the item that imports write is answered."""
    repository.write("log.py", LOGGED)
    item = "Measure what it costs before and after the fix"
    text = FOUND.format("T-06", "log.py") + f"\n## Verification\n\n- [ ] {item}\n"
    repository.write("tickets/T-06.md", text)
    assert 0 == tickets("probe", "log.py", *SIMULATED, "--for", "T-06", "--draft", "log.py:6").code
    after = (repository.root / "tickets/T-06.md").read_text()
    assert f'  - {{item: "{item}", claims: [fix.syncs]}}\n```\n' in after
    assert 'function: score, code: "return total + x.max().item()"}' in after
