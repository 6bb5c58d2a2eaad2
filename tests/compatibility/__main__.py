"""Runs small programs on the libraries that people use, each by ``tickets probe`` in a process of its own.

``python -m tests.compatibility`` prints docs/compatibility.md; names such as ``peft`` or ``peft:lora`` run
those alone. The exit code is 1 if a program fails that should run, or runs that should be refused: the second
paragraph of its docstring says so. It is also 1 if operations are unknown that the page does not name, or a
row is marked that was not, on the release of torch that the page is about. ``requirements.txt`` has the
libraries.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/compatibility.md"
PROGRAMS = Path(__file__).parent / "programs"
ARCHITECTURES = PROGRAMS / "architectures.py"
SECONDS = 300
AT_ONCE = 6
"""Architectures that one process runs."""
REFUSED = "Refused: "
APPROXIMATE = "~"
HEAD = """\
# Compatibility

```sh
tickets probe tests/compatibility/programs/peft.py:lora
```

counts what a small program does that uses a library as people do: real features, a tiny model, nothing
downloaded. This page has what each of [these programs](../tests/compatibility/programs), whose docstrings
say what they use, did on a simulated device. `python -m tests.compatibility` prints it;
`.github/workflows/compatibility.yml` runs them every week, also on other versions of torch.

- The number is how often the host [waits](metrics.md); `~` means that some costs are
  [approximate](simcuda.md#what-is-approximate), as every matrix product is.
- **Versions of torch.** The page is about 2.13.0, but torchvision ran on 2.14.1. With 2.14.1 the programs of
  torch do, wait and are marked the same, the tests of the device and of measuring pass, and our own tickets
  have the same laws and verdicts. With 2.11 and 2.12 a real GPU is measured, and no device is simulated.
- Somebody who wrote no rule of the device [checked the lines that wait](../tests/compatibility/checked.md).
"""
UNKNOWN = """
## Unknown

What these operations cost [is not known](simcuda.md#what-is-approximate).
"""
REFUSALS = """
## Refused

These [do not run](simcuda.md#what-is-refused).
"""
ARCHITECTURE_HEAD = """
## Architectures of transformers

Tiny and random, from their configurations: forward, backward, a step of AdamW, and `generate` of three tokens
where there is one. So often each waits:
"""


@dataclass(frozen=True)
class Program:
    """A function of a file of programs."""

    library: str
    function: str
    feature: str
    refused: str

    @property
    def name(self) -> str:
        """How it is named on the command line."""
        return f"{self.library}:{self.function}"


def programs() -> Iterator[Program]:
    """Every program, by library and in the order of its file."""
    for file in sorted(PROGRAMS.glob("*.py")):
        if file == ARCHITECTURES:
            continue
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                feature, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
                refused = " ".join(rest.removeprefix(REFUSED).split()) if rest.startswith(REFUSED) else ""
                yield Program(file.stem, node.name, " ".join(feature.split()).rstrip("."), refused)


def architectures() -> list[str]:
    """The names of the architectures of transformers."""
    body = ast.parse(ARCHITECTURES.read_text(encoding="utf-8")).body
    (names,) = [
        node.value.func.value
        for node in body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "NAMES"
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
    ]
    return str(ast.literal_eval(names)).split()


def probe(file: Path, function: str, *options: str) -> dict[str, Any]:
    """What the tool says about a function; ``errors`` alone if it says nothing."""
    command = [sys.executable, "-m", "finding_tickets", "probe", f"{file.relative_to(ROOT)}:{function}"]
    began = time.monotonic()
    ended = subprocess.run(
        [*command, "--meter", "simulated", "--timeout", str(SECONDS), "--format", "json", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
    )
    print(
        f"{file.stem}:{function} {time.monotonic() - began:.1f} s",
        ended.returncode,
        file=sys.stderr,
        flush=True,
    )
    try:
        (data,) = json.loads(ended.stdout)["data"]
    except ValueError:
        return {"errors": [ended.stderr.strip()]}
    return dict(data)


@dataclass(frozen=True)
class Outcome:
    """What a program did."""

    program: Program
    data: dict[str, Any]

    @property
    def said(self) -> str:
        """The errors, in a line."""
        return " ".join(" ".join(self.data["errors"]).split())

    @property
    def unknown(self) -> str:
        """The operations of unknown cost."""
        return "" if self.said else ", ".join(f"`{name}`" for name in self.data["unknown"])

    @property
    def marks(self) -> str:
        """The operations of unknown cost, and a sign for those that are approximate."""
        return "" if self.said else self.unknown + APPROXIMATE * bool(self.data["approximate"])

    @property
    def cell(self) -> str:
        """The program with its waits."""
        if self.said:
            return f"`{self.program.function}` refused"
        return f"`{self.program.function}` {waits(self.data)}{APPROXIMATE * bool(self.data['approximate'])}"

    @property
    def is_as_expected(self) -> bool:
        """Whether it runs, if it should, or is refused."""
        return bool(self.said) == bool(self.program.refused)


def waits(data: dict[str, Any], point: int = 0) -> int:
    """How often the host waited."""
    return int(data["metrics"]["syncs"]["values"][point])


def marks(page: str) -> dict[str, str]:
    """What is marked in each program on a page."""
    found = {}
    for library, cells in re.findall(r"^\| (\w+) \S+ \| (.*) \|$", page, re.MULTILINE):
        for function, sign in re.findall(rf"`(\w+)` (?:\d+|refused)({APPROXIMATE}?)", cells):
            found[f"{library}:{function}"] = sign
    for name, operations in re.findall(r"^\| `(\w+:\w+)` \| (`.*) \|$", page, re.MULTILINE):
        found[name] += operations
    return found


def is_worse(now: str, then: str | None) -> bool:
    """Whether a row names unknown operations that it did not, or is marked and was not; a new row is not."""
    if then is None:
        return False
    return bool(now and not then) or any(name not in then for name in re.findall("`.+?`", now))


def release(library: str) -> str:
    """The installed version of a library, or that there is none."""
    try:
        return version(library).partition("+")[0]
    except PackageNotFoundError:
        return "not installed"


def main(chosen: list[str]) -> int:
    """Print the page of the programs that are chosen, or of all."""
    page = PAGE.read_text(encoding="utf-8")
    if f"\n| torch {release('torch')} |" not in page:
        page = ""
    before = marks(page)
    outcomes, wrong = [], []
    for each in programs():
        if chosen and not {each.library, each.name} & {*chosen}:
            continue
        outcome = Outcome(each, probe(PROGRAMS / f"{each.library}.py", each.function))
        outcomes.append(outcome)
        if not outcome.is_as_expected or is_worse(outcome.marks, before.get(each.name)):
            wrong.append(each.name)
    print(program_page(outcomes))
    if not chosen or "architectures" in chosen:
        wrong += print_architectures(page)
    if wrong:
        print("not as expected:", *wrong, file=sys.stderr)
    return 1 if wrong else 0


def program_page(outcomes: list[Outcome]) -> str:
    """The page but for architectures."""
    lines = [HEAD, "| library | programs |", "|---|---|"]
    for library in dict.fromkeys(each.program.library for each in outcomes):
        cells = ", ".join(each.cell for each in outcomes if each.program.library == library)
        lines.append(f"| {library} {release(library)} | {cells} |")
    lines += [UNKNOWN, "| program | operations |", "|---|---|"]
    lines += [f"| `{each.program.name}` | {each.unknown} |" for each in outcomes if each.unknown]
    lines += [REFUSALS, "| program | reason |", "|---|---|"]
    for each in outcomes:
        if each.said:
            reason = each.program.refused if each.is_as_expected else each.said.replace("|", "\\|")
            lines.append(f"| `{each.program.name}` | {each.program.feature}: {reason} |")
    return "\n".join(lines)


def print_architectures(page: str) -> list[str]:
    """Run and print the architectures of transformers; return those that are not as expected."""
    print(ARCHITECTURE_HEAD)
    names = architectures()
    unknown: set[str] = set()
    wrong = []
    for first in range(0, len(names), AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, len(names)))
        data = probe(ARCHITECTURES, "run", "--sweep", f"number={','.join(map(str, numbers))}")
        for point, number in enumerate(numbers):
            failures = []
            for text in data["errors"]:
                if f"number={number}:" in text or "metrics" not in data:
                    failures.append(text)
            wrong += [names[number]] * bool(failures)
            end = "." if number == len(names) - 1 else ","
            result = f"({failures[0]})" if failures else str(waits(data, point))
            print(f"`{names[number]}` {result}{end}", flush=True)
        unknown.update(data.get("unknown", ()))
    print(f"\nUnknown are {', '.join(sorted(unknown)) or 'no operations'}.")
    return wrong + [f"architectures:{name}" for name in sorted(unknown) if page and name not in page]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
