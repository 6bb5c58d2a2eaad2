"""Ask a command how often small programs wait for the GPU, and score its answers.

``python evals/run.py`` asks ``tickets claim``. ``python evals/run.py COMMAND ...`` asks another command: it
runs in a folder with ``program.py``, gets the question as its last argument, and prints ``yes``, ``no`` or a
number.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

QUESTIONS = Path(__file__).with_name("questions.yaml")
SECONDS = 120.0


@dataclass(frozen=True)
class Question:
    """A program, where in it waits are asked for, and the answer: a number, or whether there are any."""

    id: str
    program: str
    why: str
    line: int = 0
    how_many: int | None = None
    waits: bool = False

    @property
    def place(self) -> str:
        """Return the program or its line."""
        return f"program.py:{self.line}" if self.line else "program.py"

    @property
    def text(self) -> str:
        """Return the question in words."""
        if self.how_many is None:
            return f"Does {self.place} make the host wait for the GPU? Answer yes or no."
        return f"How many times does {self.place} make the host wait for the GPU? Answer with a number."

    @property
    def answer(self) -> str:
        """Return the answer that is right."""
        if self.how_many is None:
            return "yes" if self.waits else "no"
        return str(self.how_many)


def main(command: list[str]) -> int:
    """Ask all questions, print each wrong answer and the score."""
    questions = [Question(**each) for each in yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))]
    right = 0
    for question in questions:
        with tempfile.TemporaryDirectory() as folder:
            program = f"import torch\n{question.program}"
            Path(folder, "program.py").write_text(program, encoding="utf-8")
            answer = ask(command, question, folder) if command else ask_tickets(question, folder)
        if answer == question.answer:
            right += 1
        else:
            print(f"{question.id}: {answer}, not {question.answer}: {question.why}")
    print(f"{right} of {len(questions)}")
    return 0 if right == len(questions) else 1


def ask(command: list[str], question: Question, folder: str) -> str:
    """Return the first answer in what a command prints."""
    printed = run([*command, question.text], folder)
    words = re.findall(r"\byes\b|\bno\b|\d+", printed.lower())
    return words[0] if words else "nothing"


def ask_tickets(question: Question, folder: str) -> str:
    """Return what ``tickets claim`` measures."""
    of_line = f" of {question.place}" if question.line else ""
    claim = [f"waits{of_line} is 0", "--run", "program.py", "--format", "json"]
    printed = run([sys.executable, "-m", "finding_tickets", "claim", *claim], folder)
    if not printed:
        return "nothing"
    (item,) = json.loads(printed)["data"]
    if question.how_many is None:
        return "no" if item["measured"] == "0" else "yes"
    return str(item["measured"])


def run(command: list[str], folder: str) -> str:
    """Return what a command prints in a folder."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
