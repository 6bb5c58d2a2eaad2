"""What a search measures on, asked of a process that may start CUDA: what is kept belongs to it."""

from __future__ import annotations

from dataclasses import replace

from finding_tickets.measure.isolation import Isolation
from finding_tickets.measure.tasks import DEVICES
from finding_tickets.verify.session import Settings, asked, taken


def took(isolation: Isolation, settings: Settings) -> Settings:
    """The settings with the meter that ``auto`` takes here."""
    return replace(settings, meter=taken(isolation, settings))


def devices(isolation: Isolation, settings: Settings) -> tuple[str, ...]:
    """The GPUs that real runs may use and the version of CUDA for each; none for simulated runs."""
    return tuple(asked(isolation, settings, DEVICES) or ()) if settings.meter == "cuda" else ()
