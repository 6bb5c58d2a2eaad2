"""What a search measures on, asked of a process that may start CUDA: what is kept belongs to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from finding_tickets.verify.isolate import Isolation, Task
from finding_tickets.verify.measuring import CHOICE, DEVICES
from finding_tickets.verify.session import Settings


def took(isolation: Isolation, settings: Settings) -> Settings:
    """The settings with the meter that ``auto`` takes here."""
    if settings.meter != "auto":
        return settings
    return replace(settings, meter=_answer(isolation, settings, CHOICE, "auto") or settings.meter)


def devices(isolation: Isolation, settings: Settings) -> tuple[str, ...]:
    """The GPUs that real runs may use and the version of CUDA for each; none for simulated runs."""
    return tuple(_answer(isolation, settings, DEVICES) or ()) if settings.meter == "cuda" else ()


def _answer(isolation: Isolation, settings: Settings, target: str, payload: object = None) -> Any:
    """What a process says; None where it cannot."""
    ask = Task(
        target=target, payload=payload, root=settings.root, timeout=settings.timeout, memory=settings.memory
    )
    ((_, answer),) = isolation.run({target: ask})
    return answer.value
