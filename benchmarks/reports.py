"""``tickets report`` on 10 000 generated tickets that were read before; one in a hundred is measured.

The claims, of processor time and of memory at the peak: Markdown in at most 3 s, HTML in at most 10 s, each
below 500 MB; the page of HTML can be used in Chromium after at most 2 s. Each is compared with its floor in
the same run: a process that writes a line of Jinja's for each ticket from rows that lie in a database, and
for HTML the text of each as well, which the same libraries turn into HTML and clean. It counts nothing, asks
for no evidence and draws nothing.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import page
from benchmarks.command import main
from benchmarks.processes import environment, run
from benchmarks.result import Bound, Number, Result, Size
from benchmarks.rows import write_rows

COUNT = {Size.FULL: 10_000, Size.QUICK: 1_000, Size.LEAST: 100}
ROUNDS = {Size.FULL: 5, Size.QUICK: 3, Size.LEAST: 1}
MEMORY = Bound(500)
TICKETS = [sys.executable, "-m", "finding_tickets"]
MARKDOWN_FLOOR = """
import json, sqlite3, sys
from jinja2 import Environment

database, register, output = sys.argv[1:]
rows = [json.loads(row) for row, in sqlite3.connect(database).execute("SELECT content FROM ticket")]
lines = "{% for row in rows %}| {{ row.id }} | {{ row.title }} | {{ row.severity }} |\\n{% endfor %}"
with open(output, "w") as file:
    file.write(Environment().from_string(lines).render(rows=rows))
"""
HTML_FLOOR = """
import json, os, sqlite3, sys
import nh3, pyromark
from jinja2 import Environment

database, register, output = sys.argv[1:]
rows = [json.loads(row) for row, in sqlite3.connect(database).execute("SELECT content FROM ticket")]
parser, cleaner = pyromark.Markdown(options=pyromark.Options.ENABLE_TABLES), nh3.Cleaner()
for row in rows:
    with open(os.path.join(register, row["path"])) as file:
        row["text"] = cleaner.clean(parser.html(file.read()))
lines = "{% for row in rows %}<tr><td>{{ row.id }}<td>{{ row.title|e }}<td>{{ row.text }}\\n{% endfor %}"
with open(output, "w") as file:
    file.write(Environment().from_string(lines).render(rows=rows))
"""


@dataclass(frozen=True)
class Format:
    """A format of reports: its floor, the seconds of processors and the floors that a report may take."""

    name: str
    floor: str
    seconds: Bound
    floors: Bound


FORMATS = (
    Format("markdown", MARKDOWN_FLOOR, seconds=Bound(3.0), floors=Bound(7)),
    Format("html", HTML_FLOOR, seconds=Bound(10.0), floors=Bound(4)),
)


def measure(size: Size) -> Iterator[Result]:
    """A report of each format and its floor in turn, then the page of HTML in a browser."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        register, database, env = folder / "register", folder / "rows.sqlite3", environment(folder)
        # In a process of its own, because those that are measured begin with this one's memory.
        write = [sys.executable, "-m", "benchmarks.measured", str(register), str(COUNT[size])]
        subprocess.run(write, check=True)
        write_rows(register, database, env)
        for form in FORMATS:
            yield from report(form, register, database, env, ROUNDS[size])
        yield page.measure(register.with_suffix(".html"), ROUNDS[size])


def report(
    form: Format, register: Path, database: Path, env: dict[str, str], rounds: int
) -> Iterator[Result]:
    """Reports in one format, written beside the register, and the floor; several come after one of each."""
    output, least = register.with_suffix(f".{form.name}"), register.with_suffix(".floor")
    command = [*TICKETS, "report", "--root", str(register), "--format", form.name, "--output", str(output)]
    floor = [sys.executable, "-c", form.floor, str(database), str(register), str(least)]
    runs = [(run(command, env), run(floor, env)) for _ in range(rounds + (rounds > 1))][-rounds:]
    ours, theirs = zip(*runs, strict=True)
    yield Result(
        name=f"report-{form.name}",
        what=f"a report in {form.name} / what its libraries take for as many lines",
        value=median(one.processor / two.processor for one, two in runs),
        bound=form.floors,
        beside=(
            Number("the floor", median(each.processor for each in theirs), "s of processors"),
            Number("written", output.stat().st_size / 1e6, "MB"),
            Number("by the floor", least.stat().st_size / 1e6, "MB"),
        ),
    )
    yield Result(
        name=f"report-{form.name}-time",
        what=f"a report in {form.name}, seconds of processors",
        value=median(each.processor for each in ours),
        unit="s",
        bound=form.seconds,
        beside=(Number("by the clock", median(each.wall for each in ours), "s"),),
    )
    yield Result(
        name=f"report-{form.name}-memory",
        what=f"a report in {form.name}, memory at the peak",
        value=max(each.megabytes for each in ours),
        unit="MB",
        bound=MEMORY,
        beside=(Number("the floor", max(each.megabytes for each in theirs), "MB"),),
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
