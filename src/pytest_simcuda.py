"""The pytest plugin of simcuda: CUDA devices that count, real ones where there are any, else simulated ones.

pytest imports this module in every run, so it stays apart from simcuda, which imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from simcuda import Gpu

MARKER = "simcuda(devices=1, capacity=None, profile=None)"
SIMULATED_ONLY = ("capacity", "profile")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the fixture."""
    group = parser.getgroup("simcuda", "the CUDA devices of the fixture gpu")
    group.addoption(
        "--simcuda-real",
        choices=("auto", "never", "always"),
        default="auto",
        help="measure a real GPU if there is one (auto, the default), never or always",
    )
    group.addoption(
        "--simcuda-profile", metavar="NAME", help="the profile of simulated devices, by default h200-cuda13"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    meaning = (
        "how many devices the fixture gpu has; a capacity in bytes or a profile makes them simulated ones"
    )
    config.addinivalue_line("markers", f"{MARKER}: {meaning}")


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Iterator[Gpu]:
    """CUDA devices whose costs are counted: real ones where there are any, else simulated ones."""
    wanted = _wanted(request.node.get_closest_marker("simcuda"))
    name, chosen = _choose(wanted, request.config)
    with chosen as devices:
        request.node.add_report_section("setup", "simcuda", f"counted on {name}")
        yield devices


def _wanted(marker: pytest.Mark | None) -> Mapping[str, Any]:
    """What the marker asks for."""
    if marker is None:
        return {}
    if marker.args or not set(marker.kwargs) <= {"devices", *SIMULATED_ONLY}:
        given = [*map(repr, marker.args), *(f"{name}={value!r}" for name, value in marker.kwargs.items())]
        pytest.fail(f"@pytest.mark.simcuda({', '.join(given)}): it takes {MARKER}", pytrace=False)
    return marker.kwargs


def _choose(wanted: Mapping[str, Any], config: pytest.Config) -> tuple[str, AbstractContextManager[Gpu]]:
    """What the devices are, in words, and the devices."""
    from simcuda import simulation

    # A simulation that pytest runs within, as when a test is probed, counts this test too.
    if active := simulation.active():
        return f"{active.profile.name}, simulated around this test", nullcontext(active)
    mode, count = config.getoption("simcuda_real"), wanted.get("devices", 1)
    profile = wanted.get("profile") or _profile(config)
    if mode != "never":
        from simcuda import real

        missing = real.why_not()
        if missing and mode == "always":
            pytest.fail(f"--simcuda-real=always: {missing}", pytrace=False)
        unfit = missing or _why_not_here(wanted, count)
        if not unfit:
            return real.environment().gpu, real.real_device(count)
        if mode == "always":
            pytest.skip(f"--simcuda-real=always: {unfit}")
    import simcuda

    return f"{profile}, simulated", simcuda.device(count, profile=profile, capacity=wanted.get("capacity"))


def _why_not_here(wanted: Mapping[str, Any], count: int) -> str | None:
    """Why a test cannot run on the real devices of this machine."""
    import torch

    if asked := [name for name in SIMULATED_ONLY if name in wanted]:
        return f"the test asks for a {asked[0]}, which only simulated devices have"
    there = torch.cuda.device_count()
    return f"the test needs {count} devices, and there are {there}" if there < count else None


def _profile(config: pytest.Config) -> str:
    """The profile that the options ask for; a wrong one ends the session, as other wrong options do."""
    from simcuda.profile import DEFAULT_PROFILE, PROFILES

    profile: str = config.getoption("simcuda_profile") or DEFAULT_PROFILE
    if profile not in PROFILES:
        message = f"--simcuda-profile: there is no profile {profile!r}; there are {', '.join(PROFILES)}"
        pytest.exit(message, returncode=pytest.ExitCode.USAGE_ERROR)
    return profile
