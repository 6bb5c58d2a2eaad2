"""What cannot run on a simulated device, refused with a word on what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.autograd.profiler
import torch.cuda.graphs

from simcuda.patches import Patches


def install(patches: Patches) -> None:
    """Refuse compilation, CUDA graphs, data parallelism by threads, and CUDA's profiler."""
    patches.set(torch, compile=_refuse("torch.compile", "compile outside simcuda.device()"))
    eagerly = "run the captured code as it is"
    patches.set(torch.cuda.graphs.CUDAGraph, __new__=_refuse("torch.cuda.CUDAGraph", eagerly))
    patches.set(torch.cuda.graphs.graph, __init__=_refuse("torch.cuda.graph", eagerly))
    graphed = _refuse("torch.cuda.make_graphed_callables", eagerly)
    patches.set(torch.cuda, make_graphed_callables=graphed)
    patches.set(torch.cuda.graphs, make_graphed_callables=graphed)
    alone = _refuse("torch.nn.DataParallel", "call the module itself, on one device")
    patches.set(torch.nn.DataParallel, __init__=alone)
    profile = torch.autograd.profiler.profile
    patches.set(profile, __init__=_profile_host_only(profile.__init__))


def _refuse(what: str, instead: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"{what} does not run on a simulated CUDA device; {instead}")

    return refuse


def _profile_host_only(original: Callable[..., None]) -> Callable[..., None]:
    refuse = _refuse("Profiling of CUDA", "profile with activities=[ProfilerActivity.CPU]")

    def __init__(profile: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - the name that is replaced
        if kwargs.get("use_cuda") or kwargs.get("use_device") == "cuda":
            refuse()
        original(profile, *args, **kwargs)

    return __init__
