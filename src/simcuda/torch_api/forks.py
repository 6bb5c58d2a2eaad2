"""Processes that are forked during a simulation cannot use its devices, as they cannot use those of CUDA."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any

from simcuda.cost.call import all_tensors_in
from simcuda.device.storages import HOST
from simcuda.torch_api.dispatch import Dispatcher

BAD_FORK = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
    "'spawn' start method"
)

_watching: list[Dispatcher] = []


@contextmanager
def refused_in_children(dispatcher: Dispatcher) -> Iterator[None]:
    """Let processes that are forked in this block run on the host alone."""
    _watching.append(dispatcher)
    try:
        yield
    finally:
        _watching.remove(dispatcher)


def _forked() -> None:
    for dispatcher in _watching:
        on_host: Any = MethodType(_run_on_host, dispatcher)
        dispatcher.run = on_host  # type: ignore[method-assign]  # for this one alone


def _run_on_host(
    dispatcher: Dispatcher, operation: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    device = kwargs.get("device")
    tags = [dispatcher._of(tensor) for tensor in all_tensors_in(args, kwargs)]
    if (
        dispatcher._asked.destination not in (None, HOST)
        or (device is not None and device.type == "cuda")
        or any(tag is not None and tag.device != HOST for tag in tags)
    ):
        raise RuntimeError(BAD_FORK)
    return operation._op(*args, **kwargs)


os.register_at_fork(after_in_child=_forked)
