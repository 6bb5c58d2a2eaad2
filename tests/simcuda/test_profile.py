import dataclasses

import pytest

from simcuda.profile import DEFAULT_PROFILE, PROFILES


def test_the_profiles_by_name() -> None:
    """Three profiles exist, each under its own name, the H200 with CUDA 13 by default."""
    names = ["h200-cuda13", "h200-cuda12", "a100-cuda12"]
    assert names == list(PROFILES)
    assert names == [profile.name for profile in PROFILES.values()]
    assert "h200-cuda13" == DEFAULT_PROFILE


def test_a_profile_cannot_be_changed() -> None:
    """Counts follow a profile, so nobody may alter one while it is in use."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        PROFILES[DEFAULT_PROFILE].multiprocessors = 1  # type: ignore[misc] # the assignment that must fail
