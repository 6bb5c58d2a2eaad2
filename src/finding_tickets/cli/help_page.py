"""``tickets --help``, printed without loading the commands that it names."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

WIDTH = 80
PURPOSE = "Finding tickets that are closed by measurement."
OPTIONS = {
    "--version": "Print the version.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the installation.",
    "--help": "Show this message and exit.",
}
SUMMARIES = {
    "init": "Configure a register for the tickets that are there, and write a first verifier.",
    "list": "List documents with severity, status and verdict.",
    "show": "Show documents with their verdict, laws and claims.",
    "new": "Write a ticket under the next free ID.",
    "import": "Write a ticket for each finding of another tool, in SARIF, that has none yet.",
    "set": "Set metadata: severity=P3 assignee=me.",
    "close": "Close a ticket; as fixed only if it is verified.",
    "reopen": "Open a closed ticket again.",
    "relate": "Relate two tickets, in both of them.",
    "tick": "Tick items of a checklist.",
    "graph": "Show how documents relate to one another.",
    "probe": "Run code under a meter and print the lines that wait, copy or allocate, heaviest first.",
    "lint": "Check structure, words, IDs, relations, decisions, cited code and claims.",
    "verify": "Measure tickets and compare the laws with what they claim.",
    "check": "Measure again what a branch changes and compare with its base.",
    "audit": "Try fixes that cheat, and see which of them the verifier catches.",
    "bisect": "Find the commits that introduced, fixed and brought back what a ticket claims.",
    "history": "Show verdict and law at every commit that changed the evidence, or measure every commit.",
    "report": "Report counts, laws, refuted claims and open work.",
}


def help_page(commands: Iterable[str], epilog: str) -> str:
    """What ``tickets`` is, its options and ``commands``; ``epilog`` goes below."""
    summaries = {name: SUMMARIES.get(name, "") for name in commands}

    def table(texts: Mapping[str, str]) -> str:
        width = max(map(len, texts))
        lines = []
        for name, text in texts.items():
            first, below = f"  {name.ljust(width)}  ", " " * (width + 4)
            lines.append(textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=below))
        return "\n".join(lines)

    return "\n".join(
        [
            "Usage: tickets [OPTIONS] COMMAND [ARGS]...",
            f"\n  {PURPOSE}",
            f"\nOptions:\n{table(OPTIONS)}",
            f"\nCommands:\n{table(summaries)}",
            f"\n{textwrap.fill(epilog, WIDTH, initial_indent='  ', subsequent_indent='  ')}",
        ]
    )
