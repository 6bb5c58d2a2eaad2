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
HEAD = """\
# Compatibility

Small programs use libraries as people do: real features, tiny models, nothing downloaded. Each runs by
[`tickets probe`](probe.md) in a process of its own, on a simulated device. This page is what they did, as
`python -m tests.compatibility` prints it; `.github/workflows/compatibility.yml` runs them every week, also on
other versions of torch.

- **Waits** are [`syncs`](metrics.md), with those that drain in brackets.
- **Marked** are operations whose cost is [unknown, or approximate](simcuda.md#what-is-approximate).
  Approximate ones are only counted: every matrix product is one.
- **Refused** is what [does not run](simcuda.md#what-is-refused), with the message and the reason.
- **Versions of torch.** The page is about 2.13.0. With 2.14.1 the programs of torch do, wait and are marked
  the same, the tests of the device and of measuring pass, and our own tickets have the same laws and
  verdicts. With 2.11 and 2.12 a real GPU is measured, and no device is simulated.
- Somebody who wrote no rule of the device [checked the lines that wait](../tests/compatibility/checked.md).
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


def waits(data: dict[str, Any], point: int = 0) -> str:
    """How often the host waited, and in brackets how often the device then had nothing left to do."""
    syncs, drains = (data["metrics"][name]["values"][point] for name in ("syncs", "drains"))
    return f"{syncs} ({drains})" if syncs else "0"


def marked(data: dict[str, Any]) -> str:
    """The operations whose cost is not known, and how many are approximate."""
    unknown = ", ".join(f"`{name}`" for name in data["unknown"])
    approximate = len(data["approximate"])
    return "; ".join(
        [
            *([f"unknown: {unknown}"] if unknown else []),
            *([f"{approximate} approximate"] if approximate else []),
        ]
    )


def marks(page: str) -> dict[str, str]:
    """What is marked in each program's row of a page."""
    return {
        f"{section.split()[0]}:{function}": cell.strip()
        for section in page.split("\n## ")[1:]
        for function, cell in re.findall(r"^\| .+? \| `(\w+)` \| .* \|([^|]*)\|$", section, re.MULTILINE)
    }


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
    rows, wrong = [], []
    page = PAGE.read_text(encoding="utf-8")
    if f"\n## torch {release('torch')}\n" not in page:
        page = ""
    before = marks(page)
    for each in programs():
        if chosen and not {each.library, each.name} & {*chosen}:
            continue
        data = probe(PROGRAMS / f"{each.library}.py", each.function)
        said = " ".join(" ".join(data["errors"]).split()).replace("|", "\\|")
        if bool(said) != bool(each.refused) or (not said and is_worse(marked(data), before.get(each.name))):
            wrong.append(each.name)
        result = f"refused: {said} *({each.refused})*" if each.refused and said else said or "runs"
        cells = (
            each.feature,
            f"`{each.function}`",
            result,
            *(("", "") if said else (waits(data), marked(data))),
        )
        rows.append((each.library, f"| {' | '.join(cells)} |"))
    print(HEAD)
    for library in dict.fromkeys(library for library, _ in rows):
        print(f"## {library} {release(library)}\n")
        print("| feature | program | result | waits | marked |\n|---|---|---|---|---|")
        print(*(row for of, row in rows if of == library), "", sep="\n")
    if not chosen or "architectures" in chosen:
        print("## Architectures of transformers\n")
        print(
            "Tiny and random, from their configurations: forward, backward, a step of AdamW, and `generate`"
        )
        print("of three tokens where there is one.\n")
        print("| architecture | result | waits |\n|---|---|---|")
        names = architectures()
        unknown: set[str] = set()
        for first in range(0, len(names), AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, len(names)))
            data = probe(ARCHITECTURES, "run", "--sweep", f"number={','.join(map(str, numbers))}")
            for point, number in enumerate(numbers):
                failures = [
                    text for text in data["errors"] if f"number={number}:" in text or "metrics" not in data
                ]
                wrong += [names[number]] * bool(failures)
                result = failures[0] if failures else f"runs | {waits(data, point)}"
                print(f"| {names[number]} | {result} |", flush=True)
            unknown.update(data.get("unknown", ()))
        wrong += [f"architectures:{name}" for name in sorted(unknown) if page and name not in page]
        print(f"\nUnknown are {', '.join(sorted(unknown)) or 'no operations'}.")
    if wrong:
        print("not as expected:", *wrong, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
