"""TorchScript, whose interpreter may read tensors without an operation: that is unknown, not counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch

from simcuda.device.dispatch_key import wake
from simcuda.device.machine import Machine
from simcuda.device.storages import HOST
from simcuda.torch_api.patches import Patches, as_method, genuine

READING = (
    *("prim::tolist", "prim::Print", "aten::str", "aten::format", "aten::percentFormat", "aten::save"),
    *("aten::_tensor_to_list", "aten::cpu", "aten::to"),
)
"""What the interpreter does by itself with a tensor, or by a copy that it takes for none."""

PLAIN = (int, float, complex, str, torch.device, torch.dtype, torch.layout, type(None))

_doubts: WeakKeyDictionary[Any, tuple[str, ...]] = WeakKeyDictionary()


def install(machine: Machine, patches: Patches) -> None:
    """Let every call of a scripted or traced function, or method, be looked at."""
    for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod):
        call = vars(kind)["__call__"]
        if native := getattr(call, "__func__", None):
            patches.redirect(native, partial(_run, machine, genuine(native)))
        else:
            # Torch's own tests put a function of Python there.
            patches.set(kind, __call__=as_method(partial(_run, machine, call)))
    load = partial(_load, torch.jit.load)
    for owner in (torch.jit, torch.jit._serialization):
        patches.set(owner, load=load)


def _load(load: Callable[..., Any], file: Any, map_location: Any = None, *how: Any, **named: Any) -> Any:
    """``torch.jit.load``; C++ reads each tensor to the host, and then copies it where it is to be."""
    if map_location is None or torch.device(map_location).type != "cuda":
        return load(file, map_location, *how, **named)
    return load(file, "cpu", *how, **named).to(map_location)


def _run(machine: Machine, original: Callable[..., Any], script: Any, /, *args: Any, **kwargs: Any) -> Any:
    # A script may name a device that Python does not see.
    wake()
    if script not in _doubts:
        _doubts[script] = tuple(dict.fromkeys(_reads(script.inlined_graph)))
    is_method = isinstance(script, torch._C.ScriptMethod)
    if _doubts[script] and (is_method or _may_hold(machine, [args, kwargs])):
        for operation in _doubts[script]:
            machine.ledger.doubt(f"{operation} in TorchScript")
    return original(script, *args, **kwargs)


def _may_hold(machine: Machine, value: Any) -> bool:
    """Whether a value is a tensor of a device or may hold one, as objects of scripted classes do."""
    if isinstance(value, torch.Tensor):
        tag = machine.storages.of(value)
        return tag is not None and tag.device != HOST
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        return any(_may_hold(machine, each) for each in value)
    return not isinstance(value, PLAIN)


def _reads(graph: Any) -> Iterator[str]:
    """The operations of a script that read a tensor unseen, or that call what only a run can tell."""
    for node in graph.findAllNodes("prim::fork", True):
        forked = node.g("Subgraph")
        torch._C._jit_pass_inline(forked)
        yield from _reads(forked)
    if graph.findAllNodes("prim::CallMethod", True):
        yield "prim::CallMethod"
    for name in READING:
        for node in graph.findAllNodes(name, True):
            inputs = list(node.inputs())
            if name == "aten::to":
                # To where another tensor is, or to a device by its name, is as it is without a script.
                inputs = [each for each in inputs if str(each.type()).startswith("Device")]
                is_seen = all(
                    each.node().kind() == "prim::device" or getattr(each.toIValue(), "type", "") == "cuda"
                    for each in inputs
                )
            else:
                is_seen = not any("Tensor" in str(each.type()) for each in inputs)
            if not is_seen:
                yield name
