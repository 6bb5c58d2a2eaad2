"""Random numbers on simulated devices: generators, seeds and states."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

import simcuda

DEVICES = 2

cuda_random: Any = torch.cuda  # torch has no annotations for these functions
seeds: Any = torch.random


def draw(device: str = "cuda", **how: Any) -> list[float]:
    """Three random numbers."""
    made: list[float] = torch.rand(3, device=device, **how).tolist()
    return made


@pytest.mark.usefixtures("gpu")
def test_drawing_on_a_device_leaves_the_host_as_it_is() -> None:
    """A device has a generator of its own, and so has every other device."""
    torch.manual_seed(0)
    host = draw("cpu")
    torch.manual_seed(0)
    first = draw("cuda:0")
    torch.nn.functional.dropout(torch.ones(10, device="cuda"))
    assert host == draw("cpu")
    assert first == draw("cuda:1")
    assert first != draw("cuda:0")


@pytest.mark.usefixtures("gpu")
def test_seeding_a_device_leaves_the_host_as_it_is() -> None:
    """``torch.cuda.manual_seed`` seeds the current device, ``manual_seed_all`` all, and neither the host."""
    torch.manual_seed(0)
    host = draw("cpu")
    torch.manual_seed(0)
    torch.cuda.manual_seed(1)
    assert (1, host) == (cuda_random.initial_seed(), draw("cpu"))
    first = draw()
    torch.cuda.manual_seed_all(1)
    assert (first, first) == (draw("cuda:0"), draw("cuda:1"))


def test_a_seed_given_before_the_simulation_holds_in_it() -> None:
    """The devices start from the seed that ``torch.manual_seed`` gave, as CUDA's do."""
    torch.manual_seed(5)
    with simcuda.device():
        assert 5 == cuda_random.initial_seed()


@pytest.mark.usefixtures("gpu")
def test_states_are_taken_and_given_back() -> None:
    """A state that was taken gives the same numbers again; ``fork_rng`` does that for a block."""
    state, states = cuda_random.get_rng_state(), cuda_random.get_rng_state_all()
    drawn = [draw("cuda:0"), draw("cuda:1")]
    cuda_random.set_rng_state(state)
    assert drawn[0] == draw("cuda:0")
    cuda_random.set_rng_state_all(states)
    with seeds.fork_rng(devices=[0, 1]):
        assert drawn == [draw("cuda:0"), draw("cuda:1")]
    assert drawn == [draw("cuda:0"), draw("cuda:1")]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "draws",
    [
        lambda generator: torch.randn(3, device="cuda", generator=generator),
        lambda generator: torch.randperm(9, device="cuda", generator=generator),
        lambda generator: torch.multinomial(torch.ones(9, device="cuda"), 5, generator=generator),
        lambda generator: torch.empty(3, device="cuda").normal_(generator=generator),
        lambda generator: torch.bernoulli(torch.full((9,), 0.5, device="cuda"), generator=generator),
    ],
)
def test_a_generator_repeats_itself(draws: Callable[[torch.Generator], torch.Tensor]) -> None:
    """The same seed and the same state give the same numbers, whoever else draws meanwhile."""
    generator = torch.Generator("cuda").manual_seed(3)
    state = generator.get_state()
    first = draws(generator)
    draw()
    assert torch.equal(first, draws(torch.Generator("cuda").manual_seed(3)))
    generator.set_state(state)
    assert torch.equal(first, draws(generator))
    assert (3, "cuda:0") == (generator.initial_seed(), str(first.device))


def pickled(generator: torch.Generator) -> Any:
    """A generator that was written and read again."""
    return pickle.loads(pickle.dumps(generator))  # noqa: S301 - made here


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("copied", [copy.deepcopy, pickled, lambda generator: generator.clone_state()])
def test_copies_of_a_generator_go_on_as_it_does(copied: Callable[[torch.Generator], torch.Generator]) -> None:
    """A copy has the device and the state of the original."""
    generator = torch.Generator("cuda:1").manual_seed(3)
    draw("cuda:1", generator=generator)
    copy_of_it = copied(generator)
    assert torch.device("cuda", 1) == copy_of_it.device
    assert draw("cuda:1", generator=generator) == draw("cuda:1", generator=copy_of_it)


@pytest.mark.usefixtures("gpu")
def test_a_generator_of_another_type_of_device_is_refused() -> None:
    """Numbers are drawn where the result is, so the generator has to be of that type."""
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        draw("cuda", generator=torch.Generator())
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        draw("cpu", generator=torch.Generator("cuda"))


@pytest.mark.usefixtures("gpu")
def test_a_checkpoint_draws_the_same_numbers_again() -> None:
    """The recomputation of a checkpointed function drops what the first pass dropped."""
    masks = []

    def drop(x: torch.Tensor) -> torch.Tensor:
        dropped = torch.nn.functional.dropout(x)
        masks.append(dropped == 0)
        return dropped.exp()

    x = torch.ones(100, device="cuda", requires_grad=True)
    for reentrant in (True, False):
        masks.clear()
        result: Any = torch.utils.checkpoint.checkpoint(drop, x, use_reentrant=reentrant)
        draw()
        result.sum().backward()
        assert torch.equal(*masks)
