"""A small trainer of several files with a budget, and what people do to it.

``CHANGES`` are ten that spend more. ``Style`` renders the same program in many ways: each attribute is
something that people change in a commit which spends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any, NamedTuple

CONFIG = """\
meter = "simulated"

[[budget]]
name = "train"
run = "train.py --steps {steps}"
sweep = {steps = [2, 3]}
limits = {syncs = "0", implicit_syncs = "2", h2d = "steps", peak_bytes = "PEAK"}

[[budget.allow]]
file = "engine/report.py"
function = "Report.add"
text = "self.losses.append(loss.item())"
what = ["syncs"]
law = "steps"
owner = "ada"
reason = "the curve on the dashboard"

[[budget.allow]]
file = "engine/loop.py"
function = "Trainer.run"
text = "if self.best.isnan():"
what = ["syncs"]
law = "1"
owner = "bob"
reason = "a run that diverged fails"

[[budget.allow]]
file = "engine/optim.py"
function = "clip"
text = "norms.append(gradient.norm().item())"
what = ["syncs"]
law = "4*steps"
owner = "ada"
reason = "is to go"
"""
# Four parameters of 128*128 floats, each with a gradient, are live in the last step, and the update of one:
# see ``test_the_peak_of_the_trainer``.
PEAK = 11 * 128 * 128 * 4 + 3 * 4
TRACKER = '''\
"""A copy of somebody's logger."""

SEEN = []


def log(values):
    for name, value in values.items():
        SEEN.append((name, float(value)))
'''


@dataclass(frozen=True)
class Style:
    """The choices that the same program can be written by."""

    loss: str = "loss"
    gradient: str = "gradient"
    add: str = "add"
    clip: str = "clip"
    trainer: str = "Trainer"
    report_file: str = "report"
    clip_file: str = "optim"
    hints: bool = False
    comments: int = 0
    docstrings: bool = False
    is_wrapped: bool = False
    helper: bool = False
    helper_file: str = "report"
    clip_loop: str = "loop"
    early: bool = False
    message: str = "the run diverged"
    unused: int = 0
    imports: str = "from"
    order: bool = False
    check_helper: bool = False


CHOICES: dict[str, tuple[Any, ...]] = {
    "loss": ("loss", "value", "objective"),
    "gradient": ("gradient", "grad", "g"),
    "add": ("add", "record", "note"),
    "clip": ("clip", "clip_norms", "limit_norms"),
    "trainer": ("Trainer", "Loop"),
    "report_file": ("report", "journal"),
    "clip_file": ("optim", "loop", "norms"),
    "hints": (False, True),
    "comments": (0, 1, 2),
    "docstrings": (False, True),
    "is_wrapped": (False, True),
    "helper": (False, True),
    "helper_file": ("report", "numbers"),
    "clip_loop": ("loop", "comprehension", "inline"),
    "early": (False, True),
    "message": ("the run diverged", "diverged: not a number"),
    "unused": (0, 1, 2),
    "imports": ("from", "module"),
    "order": (False, True),
    "check_helper": (False, True),
}


def render(s: Style) -> dict[str, str]:
    """The files of the program."""
    files = {
        "train.py": TRAIN.replace("Trainer", s.trainer),
        "engine/__init__.py": "",
        "vendor/tracker/__init__.py": TRACKER,
        f"engine/{s.report_file}.py": _report(s),
        "engine/data.py": DATA,
        "engine/model.py": MODEL,
    }
    clip = _clip(s)
    if s.clip_file == "loop":
        files["engine/loop.py"] = _loop(s, clip)
        files["engine/optim.py"] = "import torch\n\n\n" + UPDATE
    else:
        files["engine/loop.py"] = _loop(s, "")
        files["engine/optim.py"] = "import torch\n\n\n" + (
            "\n\n".join([clip, UPDATE][:: -1 if s.order else 1]) if s.clip_file == "optim" else UPDATE
        )
        if s.clip_file == "norms":
            files["engine/norms.py"] = "import torch\n\n\n" + clip
    if s.helper and s.helper_file != "report":
        files[f"engine/{s.helper_file}.py"] = _helper(s)
    if s.unused:
        files["engine/extra.py"] = "\n\n".join(
            f"def unused_{n}(tensor):\n    return tensor.sum().item() + {n}\n" for n in range(s.unused)
        )
    return files


TRAIN = """\
import argparse

from engine.loop import Trainer

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2)
Trainer().run(parser.parse_args().steps)
"""
DATA = """\
import torch


def batches(steps):
    buffer = torch.empty(128, 128).pin_memory()
    for number in range(steps):
        rows = buffer.fill_(number + 1)
        yield rows.to("cuda", non_blocking=True)
"""
MODEL = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.ones(128, 128, device="cuda") for _ in range(4))

    def forward(self, rows):
        for weight in self.weights:
            rows = rows * weight
        return rows.mean()
"""
UPDATE = """\
def update(parameters, rate=0.1):
    with torch.no_grad():
        for parameter in parameters:
            parameter.sub_(parameter.grad, alpha=rate)
            parameter.grad = None
"""


def _helper(s: Style) -> str:
    doc = '    """The value of a tensor of one element."""\n' if s.docstrings else ""
    hint = "(tensor: object) -> float" if s.hints else "(tensor)"
    return f"def as_number{hint}:\n{doc}    return tensor.item()\n"


def _report(s: Style) -> str:
    value = f"as_number({s.loss})" if s.helper else f"{s.loss}.item()"
    line = f"self.losses.append({value})"
    if s.is_wrapped:
        line = f"self.losses.append(\n            {value}\n        )"
    hint = f"self, {s.loss}: object" if s.hints else f"self, {s.loss}"
    doc = '        """Keep a loss for the curve."""\n' if s.docstrings else ""
    comment = "        # The dashboard shows these.\n" * s.comments
    report = f"""\
class Report:
    def __init__(self):
        self.losses = []

    def {s.add}({hint}):
{doc}{comment}        {line}
"""
    if not s.helper:
        return report
    if s.helper_file == "report":
        return "\n\n".join([_helper(s), report][:: -1 if s.order else 1])
    return f"from engine.{s.helper_file} import as_number\n\n\n{report}"


def _clip(s: Style) -> str:
    g, comment = s.gradient, "    # One wait for each of them.\n" * s.comments
    if s.clip_loop == "loop":
        body = f"    norms = []\n    for {g} in gradients:\n        norms.append({g}.norm().item())\n"
    elif s.clip_loop == "comprehension":
        body = f"    norms = [{g}.norm().item() for {g} in gradients]\n"
    else:
        body = f"    norms = list()\n    for {g} in gradients:\n        size = {g}.norm().item()\n"
        body += "        norms.append(size)\n"
    hints = (
        "(gradients: list[torch.Tensor], most: float = 1e9) -> float" if s.hints else "(gradients, most=1e9)"
    )
    if s.early:
        end = "    if max(norms) <= most:\n        return max(norms)\n    for each in gradients:\n"
        end += "        each.mul_(most / max(norms))\n    return max(norms)\n"
    else:
        end = "    if max(norms) > most:\n        for each in gradients:\n"
        end += "            each.mul_(most / max(norms))\n    return max(norms)\n"
    return f"def {s.clip}{hints}:\n{comment}{body}{end}"


def _loop(s: Style, clip: str) -> str:
    other = "" if clip else s.clip_file
    lines = ["import torch", "", "from engine.data import batches", "from engine.model import Model"]
    if s.imports == "from":
        lines += [f"from engine.{other} import {s.clip}"] if other and other != "optim" else []
        both = f"{s.clip}, update" if other == "optim" else "update"
        lines += [f"from engine.optim import {both}", f"from engine.{s.report_file} import Report"]
        call, report, update = s.clip, "Report", "update"
    else:
        names = sorted({"optim", s.report_file, *([other] if other else [])})
        lines += [f"from engine import {', '.join(names)}"]
        call = f"{other}.{s.clip}" if other else s.clip
        report, update = f"{s.report_file}.Report", "optim.update"
    check = "self.best.isnan()"
    more = ""
    if s.check_helper:
        check = "self.diverged()"
        more = "\n    def diverged(self):\n        return bool(self.best.isnan())\n"
    head = "\n".join(lines) + "\n\n\n" + (f"{clip}\n\n" if clip else "")
    doc = '        """Train."""\n' if s.docstrings else ""
    hint = "(self, steps: int) -> None" if s.hints else "(self, steps)"
    return f"""{head}class {s.trainer}:
    def __init__(self):
        self.model, self.report = Model(), {report}()
        self.best = None

    def run{hint}:
{doc}        for rows in batches(steps):
            self.step(rows)
        if {check}:
            raise ValueError("{s.message}")
{more}
    def step(self, rows):
        {s.loss} = self.model(rows)
        {s.loss}.backward()
        {call}([each.grad for each in self.model.parameters()])
        {update}(self.model.parameters())
        self.report.{s.add}({s.loss})
        self.best = {s.loss}.detach()
"""


def styles(seed: int, count: int) -> Iterator[tuple[str, Style]]:
    """So many commits that each change one thing, with its name."""
    random, style = Random(seed), Style()  # noqa: S311  # nothing is secret
    names: list[str] = []
    for _ in range(count):
        # Every kind of change comes before any comes again.
        names = names or random.sample([each.name for each in fields(Style)], len(fields(Style)))
        name = names.pop()
        others = [each for each in CHOICES[name] if each != getattr(style, name)]
        style = replace(style, **{name: random.choice(others)})
        yield f"{name} = {getattr(style, name)}", style


class Change(NamedTuple):
    """An edit that spends more: what is replaced in a file, and the line that is to blame."""

    name: str
    file: str
    old: str
    new: str
    line: str


LOOP, STEP = "engine/loop.py", "        self.best = loss.detach()\n"
CHANGES = (
    Change(
        "a new .item() in a loop",
        LOOP,
        STEP,
        STEP + "        for each in self.model.parameters():\n            each.abs().max().item()\n",
        "each.abs().max().item()",
    ),
    Change(
        "if loss.isnan()",
        LOOP,
        "        loss.backward()\n",
        "        if loss.isnan():\n            return\n        loss.backward()\n",
        "if loss.isnan():",
    ),
    Change(
        "a mask index",
        "engine/data.py",
        '        yield rows.to("cuda", non_blocking=True)\n',
        '        rows = rows.to("cuda", non_blocking=True)\n'
        "        rows[rows > 9].sum()\n        yield rows\n",
        "rows[rows > 9].sum()",
    ),
    Change(
        "a logging call in a library",
        LOOP,
        STEP,
        STEP + '        tracker.log({"loss": loss})\n',
        'tracker.log({"loss": loss})',
    ),
    Change("a copy made pageable", "engine/data.py", ".pin_memory()", "", 'rows.to("cuda"'),
    Change(
        "torch.cat of all gradients",
        "engine/optim.py",
        "    norms = []\n",
        "    torch.cat([each.flatten() for each in gradients]).norm()\n    norms = []\n",
        "torch.cat(",
    ),
    Change(
        "a per-bucket read",
        "engine/optim.py",
        "            parameter.grad = None\n",
        "            parameter.grad = None\n        for bucket in (parameters[:2], parameters[2:]):\n"
        "            largest = max(bucket[0].amax().tolist(), 0)\n",
        "largest = max(bucket[0].amax().tolist(), 0)",
    ),
    Change(
        "a synchronize() left in",
        LOOP,
        STEP,
        "        torch.cuda.synchronize()\n" + STEP,
        "torch.cuda.synchronize()",
    ),
    Change("a debug print", LOOP, STEP, STEP + "        print(loss)\n", "print(loss)"),
    Change(
        "a data-dependent shape",
        "engine/model.py",
        "        return rows.mean()\n",
        "        kept = rows.detach().sum(1).nonzero()\n        return rows.mean()\n",
        "kept = rows.detach().sum(1).nonzero()",
    ),
)


def program() -> dict[str, str]:
    """The program as it is at first, with its budget."""
    files = render(Style())
    # One of the changes logs by the library, and another one reads what is passed twice.
    files["engine/loop.py"] = (
        files["engine/loop.py"]
        .replace("from engine.data", "from vendor import tracker\nfrom engine.data")
        .replace("update(self.model.parameters())", "update(list(self.model.parameters()))")
    )
    return {**files, "tickets.toml": CONFIG.replace("PEAK", str(PEAK))}
