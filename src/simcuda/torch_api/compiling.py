"""``torch.compile`` and TorchScript.

What ``torch.compile`` would compile runs as it is, and what compiling changes is marked. The interpreter of
TorchScript may read tensors without an operation: that is unknown, not counted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf
from types import ModuleType
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import torch

from simcuda.basis import operations
from simcuda.device.dispatch_key import wake
from simcuda.device.machine import Machine
from simcuda.device.storages import HOST
from simcuda.torch_api import fake_tensors
from simcuda.torch_api.patches import Patches, as_method, genuine
from simcuda.torch_api.refusals import refuse, refuse_if

Compiling = Literal["eager", "refuse"]
COMPILING: tuple[Compiling, ...] = get_args(Compiling)

DYNAMO = "torch._dynamo.eval_frame"
"""Where functions ask for their compiler, also those that were compiled before."""
FLEX = "torch.nn.attention.flex_attention"
FLEX_OPERATOR = "torch._higher_order_ops.flex_attention"

RUN_EAGERLY = "torch.compile, run eagerly"
EAGERLY = "TORCH_COMPILE_DISABLE=1 or torch.compiler.set_stance('force_eager') runs the code as it is"
# Kernels are fused, also those of the backward pass, and what is kept for it differs.
_UNBOUNDED = dict.fromkeys(
    (
        *(
            "aten_launches",
            "launches",
            "allocations",
            "largest_allocation",
            "d2d",
            "d2d_bytes",
        ),
        *("peak_bytes", "peak_allocated_bytes", "retained_bytes"),
    ),
    (inf, inf),
)


@dataclass(eq=False)
class Compiler:
    """Stands where functions ask for their compiler.

    Attributes:
        compiling: Whether what would be compiled runs ``eager``, and marks the run, or is refused.
    """

    machine: Machine
    patches: Patches
    compiling: Compiling
    _running: list[dict[str, int]] = field(default_factory=list)

    def install(self) -> None:
        """Do so in all that is loaded."""
        if self.compiling == "refuse":
            compiles = refuse_if(
                lambda *_, **__: _compiles(), torch.compile, "torch.compile", EAGERLY
            )
            self.patches.set(torch, compile=compiles)
        for name in (DYNAMO, FLEX, fake_tensors.MODULE):
            if name in sys.modules:
                self.imported(sys.modules[name])

    def imported(self, module: ModuleType) -> None:
        """Do so in a module that has just been loaded."""
        if module.__name__ == FLEX:
            warn_once: Any = module._warn_once
            # Within a method, the name is not followed to what replaces it.
            attend = as_method(
                partial(self._attend, module.flex_attention_hop.__call__)
            )
            self.patches.set(module, flex_attention_hop=attend)
            # It warns that nothing compiles it, which is so here alone.
            self.patches.set(
                module,
                _warn_once=lambda *how, **named: (
                    None if self._running else warn_once(*how, **named)
                ),
            )
        if module.__name__ == fake_tensors.MODULE:
            fake_tensors.install(self.patches, module)
        if module.__name__ != DYNAMO:
            return
        original = module._callback_from_stance
        refused = refuse("What torch.compile has made", EAGERLY)

        def callback_from_stance(callback: Any) -> Any:
            # None and False stand for code that is not to be compiled.
            if not callback:
                return original(callback)
            if _compiles():
                if self.compiling == "refuse":
                    refused()
                frame: Any = sys._getframe(1)
                self._run_eagerly(
                    frame.f_locals.get("cleanups"), frame.f_back.f_globals["__name__"]
                )
            return None

        self.patches.set(module, _callback_from_stance=callback_from_stance)
        # With fullgraph=True, a function of which nothing was compiled is an error, if that is counted.
        self.patches.set(module, set_fullgraph_compiled_frame_count=lambda _: 0)

    def _run_eagerly(self, cleanups: list[Any] | None, caller: str) -> None:
        """Mark what is counted from now on, until the ``cleanups`` of the call by a module run.

        Backward passes that come later are marked too, each from its beginning to its end.
        """
        # What flex_attention has compiled for itself has the gradients of its dense operations.
        if torch.is_grad_enabled() and caller != FLEX:
            self.machine.unsure_gradients[RUN_EAGERLY] = _UNBOUNDED
        if cleanups is None:
            # Nobody knows its end.
            self.machine.ledger.doubt(RUN_EAGERLY, _UNBOUNDED)
        else:
            self._running.append(self.machine.ledger.totals())
            cleanups.append(self._end)

    def _end(self) -> None:
        before, now = self._running.pop(), self.machine.ledger.totals()
        copies, nbytes, waits, drains = (
            now[what] - before[what]
            for what in ("h2d", "h2d_bytes", "stream_syncs", "drains")
        )
        if copies:
            # A constant of the host is compiled into the kernel; other waits and copies end a graph and stay.
            fewer = {"h2d": copies, "h2d_bytes": nbytes}
            fewer |= dict.fromkeys(("syncs", "stream_syncs"), min(waits, copies))
            fewer["drains"] = min(drains, copies)
            self.machine.ledger.doubt(
                RUN_EAGERLY, {name: (most, 0) for name, most in fewer.items() if most}
            )
        self.machine.ledger.doubt_since(RUN_EAGERLY, before, _UNBOUNDED)

    def _attend(
        self, original: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """``flex_attention``, in compiled code by operations that are not counted."""
        if len(self._running) < 2:
            # Only its own compiler, which compiles nothing: a GPU runs PyTorch's dense operations too.
            return original(*args, **kwargs)
        dense: Any = sys.modules[FLEX_OPERATOR]
        with self.machine.ledger.paused():
            return dense.sdpa_dense(*args, **kwargs)


def _compiles() -> bool:
    """Return True if code is to be compiled: neither the environment nor the stance disables that."""
    if DYNAMO not in sys.modules:
        # What the compiler will read when it is loaded, which takes a second.
        return os.environ.get("TORCH_COMPILE_DISABLE") != "1"
    dynamo: Any = torch._dynamo
    return (
        not dynamo.config.disable and dynamo.eval_frame._stance.stance != "force_eager"
    )


PLAIN = (int, float, complex, str, torch.device, torch.dtype, torch.layout, type(None))

_doubts: WeakKeyDictionary[Any, tuple[str, ...]] = WeakKeyDictionary()


def watch_scripts(machine: Machine, patches: Patches) -> None:
    """Let every call of a scripted or traced function, or method, be looked at."""
    for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod):
        call = vars(kind)["__call__"]
        if native := getattr(call, "__func__", None):
            patches.redirect(native, partial(_run_script, machine, genuine(native)))
        else:
            # Torch's own tests put a function of Python there.
            patches.set(kind, __call__=as_method(partial(_run_script, machine, call)))
    load = partial(_load_script, torch.jit.load)
    for owner in (torch.jit, torch.jit._serialization):
        patches.set(owner, load=load)


def _load_script(
    load: Callable[..., Any],
    file: Any,
    map_location: Any = None,
    *how: Any,
    **named: Any,
) -> Any:
    """``torch.jit.load``; C++ reads each tensor to the host, and then copies it where it is to be."""
    if map_location is None or torch.device(map_location).type != "cuda":
        return load(file, map_location, *how, **named)
    return load(file, "cpu", *how, **named).to(map_location)


def _run_script(
    machine: Machine,
    original: Callable[..., Any],
    script: Any,
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    # A script may name a device that Python does not see.
    wake()
    if script not in _doubts:
        _doubts[script] = tuple(dict.fromkeys(_unseen_reads(script.inlined_graph)))
    is_method = isinstance(script, torch._C.ScriptMethod)
    if _doubts[script] and (is_method or _may_hold(machine, [args, kwargs])):
        for operation in _doubts[script]:
            machine.ledger.doubt(f"{operation} in TorchScript")
    return original(script, *args, **kwargs)


def _may_hold(machine: Machine, value: Any) -> bool:
    """Return True if a value is a tensor of a device or may hold one, as objects of scripted classes do."""
    if isinstance(value, torch.Tensor):
        return machine.storages.device_of(value) != HOST
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        return any(_may_hold(machine, each) for each in value)
    return not isinstance(value, PLAIN)


def _unseen_reads(graph: Any) -> Iterator[str]:
    """The operations of a script that read a tensor unseen, or that call what only a run can tell."""
    for node in graph.findAllNodes("prim::fork", True):
        forked = node.g("Subgraph")
        torch._C._jit_pass_inline(forked)
        yield from _unseen_reads(forked)
    if graph.findAllNodes("prim::CallMethod", True):
        yield "prim::CallMethod"
    for name in operations("of TorchScript"):
        for node in graph.findAllNodes(name, True):
            inputs = list(node.inputs())
            if name == "aten::to":
                # To where another tensor is, or to a device by its name, is as it is without a script.
                inputs = [
                    each for each in inputs if str(each.type()).startswith("Device")
                ]
                is_seen = all(
                    each.node().kind() == "prim::device"
                    or getattr(each.toIValue(), "type", "") == "cuda"
                    for each in inputs
                )
            else:
                is_seen = not any("Tensor" in str(each.type()) for each in inputs)
            if not is_seen:
                yield name
