"""Random numbers: ``torch.Generator`` for simulated devices, and the one that every device draws from.

A simulated generator is a host generator that reports a simulated device: its numbers are those of a CPU
generator with the same seed, and its state has the size of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import torch

from simcuda.device.storages import HOST

_Generator = torch.Generator
_make: Any = _Generator.__new__
_simulated: WeakValueDictionary[int, SimulatedGenerator] = WeakValueDictionary()


class _AnyGenerator(type(_Generator)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Generator)


class SimulatedGenerator(_Generator, metaclass=_AnyGenerator):
    """A generator on any device."""

    _cdata: int
    _device: torch.device

    def __new__(cls, device: Any = "cpu") -> SimulatedGenerator:
        """Make a generator for ``device``."""
        generator: SimulatedGenerator = _make(cls, device="cpu")
        generator._device = (
            torch.device("cuda", device)
            if isinstance(device, int)
            else torch.device(device)
        )
        # Operations are handed another Python object for the same generator.
        _simulated[generator._cdata] = generator
        return generator

    device: Any = property(lambda self: self._device, doc="The device it was made for.")

    def clone_state(self) -> SimulatedGenerator:
        """Another generator with the same state."""
        clone = SimulatedGenerator(self._device)
        clone.set_state(self.get_state())
        return clone

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self.initial_seed(), None, self.get_state())
        return SimulatedGenerator, (str(self._device),), state


class Generators:
    """The default generator of every device; each starts from the host's seed."""

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self.defaults = tuple(SimulatedGenerator(device) for device in devices)
        for generator in self.defaults:
            # As in a fresh process, where every device begins with the seed of the host.
            generator.manual_seed(torch.initial_seed())

    def draw(
        self,
        run: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        device: int,
    ) -> Any:
        """Run an operation that draws random numbers on a device or on ``HOST``.

        Raises:
            RuntimeError: It was given a generator of another type of device.
        """
        given: Any = next(
            (v for v in (*args, *kwargs.values()) if isinstance(v, _Generator)), None
        )
        if given is not None:
            wanted = "cpu" if device == HOST else "cuda"
            found = _simulated.get(given._cdata, given).device.type
            if found != wanted:
                raise RuntimeError(
                    f"Expected a '{wanted}' device type for generator but found '{found}'"
                )
        if given is not None or device == HOST:
            return run(*args, **kwargs)
        # C++ draws from the host's default generator where it is given none.
        default = torch.default_generator
        own = self.defaults[device]
        state = default.get_state()
        default.set_state(own.get_state())
        try:
            return run(*args, **kwargs)
        finally:
            own.set_state(default.get_state())
            default.set_state(state)
