"""What the commands that measure have in common: their options, and their settings."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from finding_tickets.register.load import Register
    from finding_tickets.verify.session import Settings


class MeterName(StrEnum):
    """What counts during a run; ``auto`` is a real GPU where one is usable."""

    AUTO = "auto"
    SIMULATED = "simulated"
    CUDA = "cuda"


Meter = Annotated[MeterName, typer.Option(help="What counts during a run.")]
Sandbox = Annotated[
    bool,
    typer.Option(
        "--sandbox", help="Run code of the repository without network and where it can write nothing."
    ),
]


def timeout_option(what: str) -> typer.models.OptionInfo:
    """An option that takes seconds; ``what`` is what they limit."""
    option: typer.models.OptionInfo = typer.Option(min=0.1, metavar="SECONDS", help=what)
    return option


def revision_option(what: str) -> typer.models.OptionInfo:
    """An option that takes a commit, a branch, a tag or an expression of git's."""
    option: typer.models.OptionInfo = typer.Option(metavar="REV", help=what)
    return option


def settings_of(register: Register, meter: MeterName, timeout: float | None, **more: Any) -> Settings:
    """How a command verifies documents of a register: as configured, but for what was said to it."""
    from finding_tickets.verify.session import Settings

    return Settings(
        root=register.root.resolve(),
        evidence=register.config.evidence,
        meter=meter,
        timeout=timeout or register.config.timeout,
        memory=register.config.memory,
        **more,
    )
