"""Functions that train, and rows of layers, losses and distributions."""

# A table: a row may take two lines, and is not wrapped further.
# fmt: off
# The text of a pattern is that of its decorator.
# ruff: noqa: D103
# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from tests.gpu.pattern import HELPERS, UNSTATED, Expected, Pattern, add, pattern, row
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

Work = Callable[[], object]
optim = torch.optim


def make_parameters(count: int = 3) -> list[nn.Parameter]:
    """Return small parameters with gradients."""
    made = [nn.Parameter(torch.rand(5, 4, device="cuda")) for _ in range(count)]
    for each in made:
        each.grad = torch.rand_like(each)
    return made


WALK = "a kernel for each _foreach_ function"


# One step of three small parameters of one type, after one that made the state.
def optimizer(
    name: str,
    make: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer],
    source: str,
    launches: Expected = None,
    allocations: Expected = None,
    **numbers: Expected,
) -> None:
    """Add a pattern of one step of an optimizer, whose source is in ``torch/optim``."""

    def build() -> Work:
        stepper = make(make_parameters())
        stepper.step()
        return stepper.step

    expected = UNSTATED | numbers | {"launches": launches, "allocations": allocations}
    add(Pattern(f"optimizer {name}", build, f"torch/optim/{source}", expected))


optimizer("SGD", optim.SGD, f"sgd.py, _multi_tensor_sgd: {WALK}", 1, 0)
optimizer("SGD with momentum", partial(optim.SGD, momentum=0.9), f"sgd.py: {WALK}: mul, add, add", 3, 0)
optimizer("SGD for-loop", partial(optim.SGD, foreach=False), "sgd.py: an addition a parameter", 3, 0)
optimizer("SGD fused", partial(optim.SGD, momentum=0.9, fused=True), "sgd.py, _fused_sgd: one kernel", 1, 0)
optimizer("Adam", optim.Adam, f"adam.py: {WALK}: lerp, mul, addcmul, sqrt, div, add, addcdiv", 7, 3)
optimizer("Adam with amsgrad", partial(optim.Adam, amsgrad=True), "adam.py: as Adam, and a maximum", 8, 3)
optimizer("Adam for-loop", partial(optim.Adam, foreach=False), "adam.py: as Adam, for each of three", 21, 6)
optimizer("Adam fused", partial(optim.Adam, fused=True), "adam.py: steps on the device, one kernel", 2, 0)
optimizer(
    "Adam capturable",
    partial(optim.Adam, capturable=True),
    f"adam.py: {WALK}: 15 of them, corrections and steps on the device too; two divisions by tensors without "
    "dimensions, which _foreach_div makes one by one",
    *(21, 9),
)
optimizer("AdamW", optim.AdamW, "adamw.py: as Adam, and the decay", 8, 3)
optimizer("AdamW fused", partial(optim.AdamW, fused=True), "adam.py, _fused_adam", 2, 0)
optimizer("RMSprop", optim.RMSprop, f"rmsprop.py: {WALK}: mul, addcmul, sqrt, add, addcdiv", 5, 3)
optimizer("Adagrad", optim.Adagrad, f"adagrad.py: {WALK}: addcmul, sqrt, add, mul, addcdiv", 5, 6)
OF_ADADELTA = "mul, addcmul, add, sqrt, add, sqrt, div, mul, mul, addcmul, add"
optimizer("Adadelta", optim.Adadelta, f"adadelta.py: {WALK}: {OF_ADADELTA}", 11, 6)
optimizer("Adamax", optim.Adamax, f"adamax.py: {WALK}: lerp, mul, abs, add, maximum, addcdiv", 6, 3)
optimizer("NAdam", optim.NAdam, "nadam.py: as Adam, and one addcdiv more", 8, 3)
optimizer("RAdam", optim.RAdam, "radam.py: no value is read")
optimizer("Rprop", optim.Rprop, "rprop.py: no value is read", d2d=None)
optimizer("ASGD", optim.ASGD, "asgd.py: eta and mu of each parameter", waits=6, h2d=None, d2h=None)
optimizer("Adafactor", optim.Adafactor, "_adafactor.py: two values of each", waits=6, h2d=None, d2h=None)
optimizer("SGD that maximizes", partial(optim.SGD, maximize=True), "sgd.py: neg, add", 2, 3)
optimizer("SGD with Nesterov momentum", partial(optim.SGD, momentum=0.9, nesterov=True),
    "sgd.py: mul, add, add, add", 4, 0)
optimizer("SGD with weight decay", partial(optim.SGD, weight_decay=0.1), "sgd.py: add, add", 2, 3)
optimizer("SGD with a rate on the device", lambda p: optim.SGD(p, lr=torch.tensor(0.1, device="cuda")),
    "sgd.py: alpha=-lr is read; neg, add", waits=1, d2h=1, launches=2)
optimizer("SGD with a rate on the host", lambda p: optim.SGD(p, lr=torch.tensor(0.1)),
    "sgd.py: alpha=-lr is the host's", 1)
optimizer("SGD for-loop with weight decay", partial(optim.SGD, foreach=False, weight_decay=0.1),
    "sgd.py: two additions each", 6, 3)
optimizer("SGD fused with Nesterov", partial(optim.SGD, momentum=0.9, nesterov=True, fused=True),
    "sgd.py: one kernel", 1)
optimizer("Adam with weight decay", partial(optim.Adam, weight_decay=0.1),
    "adam.py: as Adam, and an addition", 8, 6)
optimizer("AdamW, amsgrad, maximize", partial(optim.AdamW, amsgrad=True, maximize=True),
    "adam.py: neg, decay, Adam, maximum", 10, 6)
optimizer("AdamW capturable", partial(optim.AdamW, capturable=True), "adam.py: no value is read")
optimizer("AdamW fused with amsgrad", partial(optim.AdamW, fused=True, amsgrad=True),
    "adam.py: steps, one kernel", 2)
optimizer("AdamW for-loop capturable", partial(optim.AdamW, foreach=False, capturable=True),
    "adam.py: no value is read", d2d=None)
optimizer("Adam with a rate on the device",
    lambda p: optim.Adam(p, lr=torch.tensor(1e-3, device="cuda"), capturable=True),
    "adam.py: no value is read")
optimizer("Adam fused with a rate on the device",
    lambda p: optim.Adam(p, lr=torch.tensor(1e-3, device="cuda"), fused=True), "adam.py: steps, one kernel",
    2)
optimizer("NAdam with decoupled decay", partial(optim.NAdam, decoupled_weight_decay=True, weight_decay=0.1),
    "nadam.py: no value is read")
optimizer("RAdam for-loop", partial(optim.RAdam, foreach=False), "radam.py: no value is read")
optimizer("RMSprop centered with momentum", partial(optim.RMSprop, centered=True, momentum=0.9),
    "rmsprop.py: mul, addcmul, lerp, addcmul, sqrt, add, mul, addcdiv, add", 9, 3)
optimizer("Adagrad for-loop", partial(optim.Adagrad, foreach=False),
    "adagrad.py: addcmul, sqrt, add, addcdiv each", 12, 3)
optimizer("Adadelta for-loop", partial(optim.Adadelta, foreach=False), "adadelta.py: no value is read")
optimizer("Adamax capturable", partial(optim.Adamax, capturable=True), "adamax.py: no value is read")
optimizer("Rprop for-loop", partial(optim.Rprop, foreach=False), "rprop.py: no value is read", waits=None,
    d2h=None, d2d=None, h2d=None)
optimizer("Muon", optim.Muon, "_muon.py: no value is read", d2d=None)
row("it.zero_grad()", "torch/optim/optimizer.py: gradients are dropped", name="zero_grad",
    setup="it = optim.SGD(make_parameters())", launches=0, allocations=0)
row("stepper.zero_grad(set_to_none=False)", "torch/optim/optimizer.py: zero_ of each gradient",
    name="zero_grad_in_place", setup="stepper = optim.SGD(make_parameters())", launches=3, allocations=0)
row("stepper.zero_grad(set_to_none=False)", "torch/optim/optimizer.py: _foreach_zero_",
    name="zero_grad_in_place_foreach", setup="stepper = optim.SGD(make_parameters(), foreach=True)",
    launches=1, allocations=0)
row("schedule.step()", "torch/optim/lr_scheduler.py: the host's numbers", name="scheduler_step",
    setup="stepper = optim.SGD(make_parameters()); stepper.step(); "
    "schedule = optim.lr_scheduler.CosineAnnealingLR(stepper, 10)", launches=0, allocations=0)
row("nn.utils.clip_grad_norm_(parameters, 1.0)",
    "torch/nn/utils/clip_grad.py: three kernels of _foreach_norm, stack, norm; "
    "add, reciprocal, mul, clamp, and _foreach_mul_", name="clip_grad_norm",
    setup="parameters = make_parameters()", launches=10, allocations=10)
row("nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)",
    "torch/nn/utils/clip_grad.py: as without, isnan, abs, eq, logical_or, and a read",
    name="clip_grad_norm_with_error", setup="parameters = make_parameters()", waits=1, d2h=1, launches=14,
    allocations=14)
row("nn.utils.clip_grad_norm_(parameters, 1.0).item()",
    "torch/nn/utils/clip_grad.py: as clip_grad_norm, and a read", name="clip_grad_norm_read",
    setup="parameters = make_parameters()", waits=1, d2h=1, launches=10)
row("nn.utils.clip_grad_value_(parameters, 1.0)",
    "torch/nn/utils/clip_grad.py: _foreach_clamp_min_, _foreach_clamp_max_", name="clip_grad_value",
    setup="parameters = make_parameters()", launches=2, allocations=0)
row("nn.utils.get_total_norm(gradients)", "torch/nn/utils/clip_grad.py: _foreach_norm, stack, norm",
    name="get_total_norm",
    setup="gradients = [each.grad for each in make_parameters() if each.grad is not None]", launches=5,
    allocations=6)


def make_scaled(fused: bool | None = False) -> tuple[Any, torch.optim.Optimizer]:
    """Return a gradient scaler that is in use, and an optimizer with scaled gradients."""
    scaler = torch.amp.GradScaler("cuda")
    stepper = optim.SGD(make_parameters(), fused=fused)
    scaler.scale(torch.ones((), device="cuda"))
    return scaler, stepper


row("scaler.scale(loss)", "torch/amp/grad_scaler.py: one product", name="scaler_scale",
    setup="scaler, _ = make_scaled(); loss = torch.rand((), device='cuda')", launches=1, allocations=1)
row("scaler.unscale_(stepper)",
    "torch/amp/grad_scaler.py, unscale_: double, reciprocal, float, full, one walk over the gradients; "
    "_MultiDeviceReplicator copies both numbers", name="scaler_unscale",
    setup="scaler, stepper = make_scaled()", d2d=2, launches=5, allocations=6)
row("scaler.step(stepper)",
    "torch/amp/grad_scaler.py, _maybe_opt_step: whether a gradient overflowed is read", name="scaler_step",
    setup="scaler, stepper = make_scaled()", waits=1, d2h=1, d2d=2, launches=8, allocations=6)
row("scaler.step(stepper)", "torch/amp/grad_scaler.py: fused optimizers look at the overflow themselves",
    name="scaler_step_fused", setup="scaler, stepper = make_scaled(fused=True)", waits=0, d2d=2)
row("scaler.update()", "torch/amp/grad_scaler.py: _amp_update_scale_", name="scaler_update",
    setup="scaler, stepper = make_scaled(); scaler.step(stepper)", launches=1, allocations=0)
row("scaler.get_scale()", "torch/amp/grad_scaler.py: the scale is read", name="scaler_get_scale",
    setup="scaler, _ = make_scaled()", waits=1, d2h=1, launches=0)


# Autograd.
ZEROED = "ATen/native/Loss.cpp: zeros_like, then one kernel, after two kernels forward and ones"
row("F.mse_loss(weights, weights.detach()).backward()", ZEROED, launches=5, allocations=4)
row("F.huber_loss(weights, weights.detach()).backward()", ZEROED, launches=5, allocations=4)
row("(leaf * 2).sum().backward()", "torch/csrc/autograd: mul, sum, ones, and the gradient's product",
    launches=4, allocations=4)
row("leaf.sum().backward(); (leaf * 2).sum().backward()",
    "torch/csrc/autograd/functions/accumulate_grad.h: a view is cloned, the second gradient is added",
    launches=None, d2d=None)
row("leaf.max().backward()",
    "torch/csrc/autograd/FunctionsManual.cpp, evenly_distribute_backward: isnan twice, and, eq, or, sum of "
    "truth values, div, mul; max and ones before", launches=11, allocations=9)
row("leaf.prod().backward()", "torch/csrc/autograd/FunctionsManual.cpp: where the zeros are", waits=1, d2h=1)
row("leaf[leaf > -1].sum().backward()",
    "ATen/native/IndexingUtils.h: the mask's indices, forward and backward", waits=2, d2h=2, d2d=None)
row("weights[index].sum().backward()", "ATen/native/cuda/Indexing.cu: sorted by CUB", d2d=None)
row("F.embedding(index, weights).sum().backward()",
    "ATen/native/cuda/Embedding.cu: index_select, sum; ones, contiguous, zeros and one kernel", launches=6,
    allocations=5)
row("torch.autograd.grad(leaf.square().sum(), leaf)",
    "pow, sum, ones; FunctionsManual.cpp, pow_backward: the power of 1, which Pow.cpp copies, mul, mul",
    d2d=1, launches=5, allocations=6)
row("with warnings.catch_warnings(), torch.autograd.set_detect_anomaly(True): "
    "warnings.simplefilter('ignore'); (leaf * 2).sum().backward()",
    "torch/csrc/autograd/engine.cpp: a truth value for each gradient", name="detect_anomaly",
    setup="leaf = torch.rand(4, device='cuda', requires_grad=True)", waits=2, d2h=2)
row("checkpoint(block, leaf, use_reentrant=False).sum().backward()",
    "torch/utils/checkpoint.py: the generator's state is the host's", name="checkpointed_block",
    setup="leaf = torch.rand(4, 4, device='cuda', requires_grad=True); "
    "block = lambda inputs: (inputs * 2).sin().exp()", waits=0)
row("with torch.autograd.graph.save_on_cpu(): loss = leaf.exp().sum()\nloss.backward()",
    "torch/autograd/graph.py, save_on_cpu: each saved tensor is copied, both ways with a wait",
    name="save_on_cpu", setup="leaf = torch.rand(4, 4, device='cuda', requires_grad=True)", waits=2, h2d=1,
    d2h=1)


# Programs around a model.
def make_model() -> nn.Module:
    """Return a small model on the device."""
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)).to("cuda")


row("model.to('cuda')", "ATen/native/cuda/Copy.cu: each parameter is copied, with a wait",
    name="model_to_device", setup="model = nn.Linear(6, 5)", waits=2, h2d=2, launches=0, allocations=2)
row("model.half()", "torch/nn/modules/module.py: each parameter is converted", name="model_half",
    setup="model = nn.Linear(6, 5, device='cuda')", launches=2, allocations=2)
row("{name: each.cpu() for name, each in model.state_dict().items()}",
    "ATen/native/cuda/Copy.cu: a wait for each tensor", name="state_dict_to_host",
    setup="model = make_model()", waits=4, d2h=4, launches=0, allocations=0)
row("torch.save(model.state_dict(), io.BytesIO())",
    "torch/serialization.py: each storage is copied to the host", name="save", setup="model = make_model()",
    waits=4, d2h=4, launches=0, allocations=0)
row("torch.load(saved, map_location='cuda')", "torch/serialization.py: each storage is copied to the device",
    name="load_to_device",
    setup="saved = io.BytesIO(); torch.save(make_model().state_dict(), saved); saved.seek(0)", waits=4, h2d=4,
    launches=0, allocations=4)
row("model.load_state_dict(state)", "torch/nn/modules/module.py: copy_ of each parameter",
    name="load_state_dict", setup="model, state = make_model(), make_model().state_dict()", d2d=4, launches=0,
    allocations=0)
row("copy.deepcopy(model)", "torch/nn/parameter.py: a clone of each", name="deepcopy_of_a_model",
    setup="model = make_model()", d2d=4, launches=0, allocations=4)
row("for old, new in pairs: old.mul_(0.99).add_(new, alpha=0.01)",
    "ATen/native/cuda: mul_ and add_ of each parameter", name="moving_average_in_a_loop",
    setup="slow, model = (make_model().requires_grad_(False) for _ in range(2)); "
    "pairs = [*zip(slow.parameters(), model.parameters())]", launches=8, allocations=0)
row("averaged.update_parameters(model)",
    "torch/optim/swa_utils.py: how many were averaged is a tensor of the host, which is copied with a wait",
    name="averaged_model",
    setup="model = make_model(); averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9)); "
    "averaged.update_parameters(model)", waits=1, h2d=1, launches=1, allocations=1)
row("(logits.argmax(-1) == labels).float().mean().item()",
    "argmax, eq, float, mean; ATen/native/cuda/CUDAScalar.cu", name="accuracy",
    setup="logits, labels = torch.rand(8, 5, device='cuda'), torch.randint(5, (8,), device='cuda')", waits=1,
    d2h=1, launches=4, allocations=4)
row("logits.topk(2).indices.eq(labels[:, None]).any(-1).float().sum().item()",
    "topk and its sort, eq, any, float, sum; ATen/native/cuda/CUDAScalar.cu", name="top_k_accuracy",
    setup="logits, labels = torch.rand(8, 5, device='cuda'), torch.randint(5, (8,), device='cuda')", waits=1,
    d2h=1, launches=6, allocations=6)
row("(labels * 5 + guessed).bincount(minlength=25).view(5, 5)",
    "ATen/native/cuda/SummaryOps.cu: both bounds are read", name="confusion_matrix",
    setup="guessed, labels = torch.randint(5, (8,), device='cuda'), torch.randint(5, (8,), device='cuda')",
    waits=2, d2h=2)
row("[batch.mean().item() for batch in batches]", "ATen/native/cuda/CUDAScalar.cu: each loss is read",
    name="losses_read_one_by_one", setup="batches = torch.rand(3, 4, device='cuda')", waits=3, d2h=3,
    launches=3, allocations=3)
row("torch.stack([batch.mean() for batch in batches]).tolist()",
    "ATen/native/cuda/Shape.cu: one stack, read once", name="losses_read_at_once",
    setup="batches = torch.rand(3, 4, device='cuda')", waits=1, d2h=1, launches=4, allocations=4)
row("[bool(torch.isnan(each.grad).any()) for each in parameters if each.grad is not None]",
    "ATen/native/cuda/CUDAScalar.cu: isnan of each gradient is read", name="nan_check_of_every_gradient",
    setup="parameters = make_parameters()", waits=3, d2h=3, launches=6, allocations=6)
row("[batch.to('cuda', non_blocking=True) for batch, in loader]",
    "torch/utils/data/_utils/pin_memory.py: batches are pinned, and copied without a wait",
    name="loader_with_pinned_memory",
    setup="loader = DataLoader(TensorDataset(torch.rand(8, 3)), batch_size=4, pin_memory=True)", h2d=2,
    allocations=2)
row("[batch.to('cuda') for batch, in loader]", "ATen/native/cuda/Copy.cu: each batch is copied with a wait",
    name="loader_without_pinned_memory",
    setup="loader = DataLoader(TensorDataset(torch.rand(8, 3)), batch_size=4)", waits=2, h2d=2, launches=0,
    allocations=2)
TRAINED = (
    "model = make_model(); stepper, scaler = optim.AdamW(model.parameters()), torch.amp.GradScaler('cuda'); "
    "inputs, labels = torch.rand(8, 6, device='cuda'), torch.randint(4, (8,), device='cuda')\n"
)
STEP = "stepper.zero_grad(); F.cross_entropy(model(inputs), labels).backward(); stepper.step()"
MIXED = (
    "stepper.zero_grad()\n"
    "with torch.autocast('cuda', torch.float16): loss = F.cross_entropy(model(inputs), labels)\n"
    "scaler.scale(loss).backward(); scaler.step(stepper); scaler.update()"
)
ACCUMULATED = (
    "stepper.zero_grad()\n"
    "for _ in range(4): (F.cross_entropy(model(inputs), labels) / 4).backward()\n"
    "stepper.step()"
)
row(STEP, "cuBLAS, and kernels of ATen: nothing is read", name="training_step", setup=TRAINED + STEP, waits=0)
row(MIXED, "as training_step, and torch/amp: one read in step()", name="mixed_precision_step",
    setup=TRAINED + MIXED, waits=1, d2h=1, d2d=2)
row(ACCUMULATED, "as training_step, four times before one step", name="gradient_accumulation",
    setup=TRAINED.replace("AdamW", "SGD") + ACCUMULATED, waits=0)

# Lists of tensors.
FOREACH = "ATen/native/cuda/MultiTensorApply.cuh: one walk over the lists"
row("torch._foreach_add([x, x, x], 1.0)", FOREACH, launches=1, allocations=3)
row("torch._foreach_add_([x, y, rows], 1.0)", FOREACH, launches=1, allocations=0)
row("torch._foreach_mul_([x, y], value)", FOREACH, launches=1, allocations=0)
row("torch._foreach_copy_([x, y], [x.clone(), y.clone()])", FOREACH, d2d=2, launches=1, allocations=2)
row("torch._foreach_zero_([x, y, rows])", FOREACH, launches=1, allocations=0)
row("torch._foreach_norm([x, y, rows])", "ATen/native/cuda/ForeachReduceOp.cu", launches=3, allocations=4)
row("torch._foreach_add_([x, x], [x, x], alpha=value)", "python_arg_parser.cpp: the number is read", waits=1,
    d2h=1)
row("torch._foreach_add_([rows, half], 1.0)", f"{FOREACH}; of two types one by one", launches=2,
    allocations=0)
TABLES = "ATen/native/cuda/MultiTensorApply.cuh: tables of 4 KiB in 2.11, of 32 KiB for CUDA 13 from 2.12 on"
row("torch._foreach_add_(tensors, 1.0)", TABLES, name="foreach_of_500_tensors",
    setup="tensors = [torch.rand(2, device='cuda') for _ in range(500)]", launches={"2.11": 5, "2.12": 1},
    allocations=0)
row("torch._foreach_norm(tensors)", f"{TABLES}; zeros, the norms, two sums of 400",
    name="foreach_norm_of_500_tensors", setup="tensors = [torch.rand(2, device='cuda') for _ in range(500)]",
    launches={"2.11": 8, "2.12": 4}, allocations=501)
row("torch._foreach_add_(left, right)", f"{TABLES}; depth 2", name="foreach_of_100_pairs",
    setup="left, right = ([torch.rand(2, device='cuda') for _ in range(100)] for _ in range(2))",
    launches={"2.11": 2, "2.12": 1}, allocations=0)


# Losses.
LOSS = "ATen/native/Loss.cpp: the elements' losses, then a reduction"
row("F.mse_loss(rows, rows)", LOSS, launches=2, allocations=2)
row("F.smooth_l1_loss(rows, rows)", LOSS, launches=2, allocations=2)
row("F.huber_loss(rows, rows)", LOSS, launches=2, allocations=2)
row("F.l1_loss(rows, rows)", "ATen/native/Loss.cpp: sub, abs, mean", launches=3, allocations=3)
row("F.binary_cross_entropy(rows, rows)",
    "ATen/native/cuda/Loss.cu: the losses, their mean, and its copy over the losses", d2d=1, launches=2,
    allocations=2)
row("F.binary_cross_entropy_with_logits(rows, rows)",
    "ATen/native/Loss.cpp: log_sigmoid, fill, sub, mul, sub, mean", launches=6, allocations=3)
row("F.cross_entropy(rows, classes)", "ATen/native/cuda: log_softmax, nll_loss", launches=2, allocations=3)
row("F.cross_entropy(rows, classes, label_smoothing=0.1)", "ATen/native/LossNLL.cpp: nothing is read")
row("F.cross_entropy(rows, classes, ignore_index=0)", "ATen/native/cuda/NLLLoss2d.cu: no read", launches=2)
row("F.nll_loss(rows, classes)", "ATen/native/cuda/Loss.cu: one kernel", launches=1, allocations=2)
row("F.kl_div(rows, rows)", "ATen/native/Loss.cpp: nothing is read")
row("F.cosine_similarity(rows, rows)", "ATen/native/Distance.cpp: nothing is read", d2d=None)
row("F.ctc_loss(rows[:, None], index[None, 1:], torch.tensor([4]), torch.tensor([2]))",
    "ATen/native/cuda/LossCTC.cu: three lists, and one in LossCTC.cpp, are copied; "
    "what the question for cuDNN (asked twice) reads of the targets is recorded", waits=None, h2d=4, d2h=None,
    d2d=None)

# Layers.
row("F.layer_norm(big, (1024,))", "ATen/native/cuda/layer_norm_kernel.cu: whole vectors", launches=1,
    allocations=3)
row("F.layer_norm(rows, (6,))", "ATen/native/cuda/layer_norm_kernel.cu: moments first", launches=2,
    allocations=3)
row("F.group_norm(rows.view(2, 4, 3), 2)", "ATen/native/cuda/group_norm_kernel.cu: moments, then the result",
    launches=2, allocations=3)
row("F.rms_norm(big, (1024,))", "ATen/native/cuda/layer_norm_kernel.cu: _fused_rms_norm", launches=1,
    allocations=2)
row("F.batch_norm(rows, None, None, training=True)", "cuDNN or ATen: nothing is read", d2d=None)
row("F.normalize(rows)", "torch/nn/functional.py: norm, clamp_min, div", launches=3, allocations=3)
row("F.pad(rows, (1, 1))", "ATen/native/PadNd.cpp: a fill, then a copy", launches=2, allocations=1)
row("F.max_pool1d(rows[None], 2)", "ATen/native/MaxPooling.cpp: with places", launches=1, allocations=2)
row("F.max_pool2d(rows[None], 2)", "ATen/native/cuda/DilatedMaxPool2d.cu", launches=1, allocations=2)
row("F.avg_pool2d(rows[None], 2)", "ATen/native/cuda/AveragePool2d.cu", launches=1, allocations=1)
row("F.adaptive_avg_pool2d(rows[None], 1)", "ATen/native/AdaptiveAveragePooling.cpp: mean", launches=1,
    allocations=1)
row("F.interpolate(rows[None, None], scale_factor=2.0)", "ATen/native/cuda/UpSampleNearest2d.cu", launches=1)
row("F.interpolate(rows[None, None], scale_factor=2.0, mode='bilinear')",
    "ATen/native/cuda/UpSampleBilinear2d.cu", launches=1, allocations=1)
row("F.pixel_shuffle(rows.view(1, 4, 2, 3), 2)", "ATen/native/PixelShuffle.cpp: a permuted view", launches=1)
row("F.unfold(rows[None, None], 2)",
    "ATen/native/cuda/Im2Col.cu: a result like the input, which resize_ copies into a larger one; "
    "then one kernel an image", d2d=1, launches=1, allocations=2)
row("F.glu(rows)", "ATen/native/cuda/ActivationGluKernel.cu", launches=1, allocations=1)
row("F.softmax(half, -1, dtype=torch.float)", "ATen/native/cuda/SoftMax.cu: half_to_float", launches=1,
    allocations=1)
row("F.log_softmax(half, -1, dtype=torch.float)", "ATen/native/cuda/SoftMax.cu: half_to_float", launches=1,
    allocations=1)
row("with torch.autocast('cuda'): half.softmax(-1)",
    "torch/amp/autocast_mode.py, ATen/autocast_mode.h: fp32 by half_to_float", name="softmax_under_autocast",
    setup="half = torch.rand(4, 6, device='cuda').half()", launches=1, allocations=1)
row("layer(inputs)", "ATen/native/cuda/layer_norm_kernel.cu: _fused_rms_norm", name="rms_norm_with_gradients",
    setup="layer = nn.RMSNorm(1024, device='cuda'); "
    "inputs = torch.rand(1024, 1024, device='cuda', requires_grad=True)", launches=1, allocations=2)


def moved(name: str, make: Callable[[], nn.Module], weights: int) -> None:
    """Add a pattern of a recurrent layer that is moved, whose weights are copied into one buffer of zeros."""
    copied: dict[str, Expected] = {
        "waits": weights,
        "h2d": weights,
        "d2d": weights,
        "launches": 1,
        "allocations": weights + 1,
    }

    def build() -> Work:
        layer = make()
        return lambda: layer.to("cuda")

    add(Pattern(name, build, "torch/nn/modules/rnn.py, cuDNN: one buffer", UNSTATED | copied))


moved("lstm_to_device", lambda: nn.LSTM(8, 16), 4)
moved("gru_to_device", lambda: nn.GRU(8, 16, num_layers=2, bidirectional=True), 16)


def recurrent(name: str, make: Callable[[], nn.Module], dtype: torch.dtype) -> None:
    """Add patterns of a recurrent layer: forward, and with gradients."""

    def build_forward() -> Work:
        layer = make().to("cuda", dtype)
        inputs = torch.rand(5, 2, 8, device="cuda", dtype=dtype)

        def work() -> object:
            with torch.no_grad():
                return layer(inputs)

        return work

    def build_training() -> Work:
        layer = make().to("cuda", dtype)
        inputs = torch.rand(5, 2, 8, device="cuda", dtype=dtype)
        return lambda: layer(inputs)[0].sum().backward()

    expected: dict[str, Expected] = {"waits": 0, "h2d": 0, "d2h": 0}
    source = "ATen/native/cudnn/RNN.cpp: one call of cuDNN"
    add(Pattern(f"{name} {dtype}", build_forward, source, expected))
    add(Pattern(f"{name} {dtype} with gradients", build_training, source, expected))


for of in (torch.float32, torch.float16):
    recurrent("LSTM", lambda: nn.LSTM(8, 16), of)
    recurrent("GRU", lambda: nn.GRU(8, 16), of)
    recurrent("RNN", lambda: nn.RNN(8, 16), of)
    recurrent("LSTM with a projection", lambda: nn.LSTM(8, 16, proj_size=4), of)


row("cell(inputs)", "ATen/native/cuda/RNN.cu: two products of cuBLAS, then one fused kernel",
    name="lstm_cell",
    setup="cell, inputs = nn.LSTMCell(8, 16, device='cuda'), torch.rand(2, 8, device='cuda')", d2d=None)
row("cell(inputs)", "ATen/native/cuda/RNN.cu: two products of cuBLAS, then one fused kernel", name="gru_cell",
    setup="cell, inputs = nn.GRUCell(8, 16, device='cuda'), torch.rand(2, 8, device='cuda')", d2d=None)
row("rows @ rows.t()", "ATen/native/cuda/Blas.cpp: cuBLAS")
row("F.linear(rows, rows, rows[0, :4])", "ATen/native/cuda/Blas.cpp: cuBLAS")
row("torch.bmm(big[None], big[None])", "ATen/native/cuda/Blas.cpp: cuBLAS")
row("torch.einsum('ij,kj->ik', rows, rows)", "ATen/native/Linear.cpp: bmm")
row("F.conv2d(big[None, None], rows[None, None])", "ATen/native/Convolution.cpp: cuDNN", d2d=None)
ATTENTION = "ATen/native/transformers/cuda/attention.cu: nothing is read"
row("F.scaled_dot_product_attention(rows[None], rows[None], rows[None])", ATTENTION, d2d=None)
row("F.scaled_dot_product_attention(*[torch.rand(2, 4, 8, 16, device='cuda').half()] * 3, is_causal=True)",
    ATTENTION, d2d=None)
row("layer(tokens).sum().backward()", "ATen/native/transformers/cuda/attention.cu: nothing is read",
    name="transformer_layer_in_training",
    setup="layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True).to('cuda'); "
    "tokens = torch.rand(2, 10, 32, device='cuda', requires_grad=True)", d2d=None)

# The 7 waits recorded: whether the mask is one of padding is read, and the lengths that it gives; each of two
# layers is told the cumulative lengths of queries and of keys, with a wait for both; sizes are copied as the
# padding is left out, without a wait, and as it is put back, with one.
row("with torch.no_grad(): encoder(tokens, src_key_padding_mask=padding)",
    "torch/nn/modules/transformer.py: a nested tensor of the padding mask; what waits is recorded",
    name="transformer_in_evaluation_with_padding",
    setup="layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True)\n"
    "with warnings.catch_warnings(action='ignore'): encoder = nn.TransformerEncoder(layer, 2).cuda().eval()\n"
    "tokens, padding = torch.rand(2, 10, 32, device='cuda'), torch.zeros(2, 10, device='cuda').bool(); "
    "padding[1, 7:] = True", waits=None, h2d=None, d2h=None, d2d=None)


@pattern(
    "torch/_higher_order_ops/flex_attention.py, sdpa_dense_backward; what waits is recorded",
    waits=2,
    h2d=None,
    d2h=None,
    d2d=None,
)
def flex_attention_backward() -> Work:
    from torch.nn.attention.flex_attention import flex_attention

    query = torch.rand(1, 2, 128, 16, device="cuda", requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss = flex_attention(query, query, query).sum()
    return loss.backward


row("with torch.backends.cudnn.flags(enabled=True, benchmark=True), torch.no_grad(): layer(images)",
    "ATen/native/cudnn/Conv_v8.cpp: each plan is timed; what waits is recorded",
    name="first_convolution_of_a_benchmark", setup="width = 32 + len(_WIDTHS); _WIDTHS.append(width); "
    "layer, images = nn.Conv2d(3, 8, 3, device='cuda'), torch.rand(2, 3, 32, width, device='cuda')",
    waits=None, d2d=None)


_WIDTHS: list[int] = []

POINTERS = "ATen/native/cuda/TensorShape.cu: addresses are pinned and copied without a wait"
row("torch._chunk_cat(tensors, dim=0, num_chunks=2, out=out)", POINTERS, name="chunk_cat_into_a_tensor",
    setup="tensors = [torch.rand(4, 6, device='cuda'), torch.rand(2, 6, device='cuda')]; "
    "out = torch.empty(2, 18, device='cuda')", h2d=1, launches=1, allocations=1)
row("torch.split_with_sizes_copy(flat, [4, 8], dim=1, out=parts)", POINTERS,
    name="split_with_sizes_copy_into_tensors", setup="flat = torch.rand(2, 12, device='cuda'); "
    "parts = [torch.empty(2, 4, device='cuda'), torch.empty(2, 8, device='cuda')]", h2d=1, launches=1,
    allocations=1)
row("torch.use_deterministic_algorithms(True)\n"
    "try: torch.empty(4, device='cuda')\n"
    "finally: torch.use_deterministic_algorithms(False)",
    "torch/utils/deterministic.py: fill_uninitialized_memory", name="empty_when_deterministic", launches=1,
    allocations=1)
row("torch.use_deterministic_algorithms(True)\n"
    "try: x[index] = y\n"
    "finally: torch.use_deterministic_algorithms(False)",
    "ATen/native/TensorAdvancedIndexing.cpp: sorted, as to accumulate", name="index_put_when_deterministic",
    d2d=None)


# Distributions.
CHECK = "torch/distributions/distribution.py: the check of each parameter, and of a value, is read"
STD = "ATen/native/DistributionTemplates.h: deviations are checked twice, by _assert_async from 2.14 on"
row("torch.normal(y, y + 1)", STD, waits={"2.11": 2, "2.14": 0}, d2h={"2.11": 2, "2.14": 0},
    launches={"2.11": 8, "2.14": 10})
row("torch.normal(0.0, y + 1)", STD, waits={"2.11": 2, "2.14": 0}, d2h={"2.11": 2, "2.14": 0},
    launches={"2.11": 9, "2.14": 11})
row("torch.normal(y, 1.0)", STD, d2d=None)
row("distributions.Normal(x, x + 1)", CHECK, waits=2, d2h=2)
row("distributions.Normal(x, x + 1).sample()", f"{CHECK}; {STD}", waits={"2.11": 4, "2.14": 2},
    d2h={"2.11": 4, "2.14": 2}, launches={"2.11": 12, "2.14": 14})
row("distributions.Normal(x, x + 1).rsample()", CHECK, waits=2, d2h=2)
row("distributions.Normal(x, x + 1).log_prob(x)", CHECK, waits=3, d2h=3)
row("distributions.Normal(x, x + 1, validate_args=False).log_prob(x)", CHECK)
row("distributions.Categorical(logits=rows).log_prob(classes)", CHECK, waits=2, d2h=2)
row("distributions.Categorical(logits=rows).sample()", CHECK, waits=1, d2h=1)
row("distributions.Uniform(x, x + 1)", CHECK, waits=2, d2h=2)
row("distributions.Bernoulli(x)", CHECK, waits=1, d2h=1)

# Streams and events.
row("torch.cuda.synchronize()", "c10/cuda/CUDAFunctions.cpp", waits=1, launches=0)
row("torch.cuda.current_stream().synchronize()", "c10/cuda/CUDAStream.h", waits=1, launches=0)
row("event = torch.cuda.Event(); event.record(); event.synchronize()", "ATen/cuda/CUDAEvent.h", waits=1)
row("event = torch.cuda.Event(); event.record(); event.query()", "ATen/cuda/CUDAEvent.h", setup="x + 1")
row("torch.cuda.current_stream().query()", "c10/cuda/CUDAStream.h")
row("x.record_stream(torch.cuda.Stream())", "c10/cuda/CUDACachingAllocator.cpp: when it is freed")
row("torch.cuda.current_stream().wait_stream(torch.cuda.Stream())", "cudaStreamWaitEvent: the device waits")
row("torch.cuda.manual_seed(3)", "torch/cuda/random.py: the state is the host's")
row("torch.cuda.set_rng_state(torch.cuda.get_rng_state())", "torch/cuda/random.py: the state is the host's")
row("with torch.cuda.stream(side): batch = pinned.to('cuda', "
    "non_blocking=True)\ntorch.cuda.current_stream().wait_stream(side); "
    "batch.record_stream(torch.cuda.current_stream()); batch * 2",
    "ATen/native/cuda/Copy.cu: the side stream copies, and the device waits for it",
    name="prefetch_on_a_side_stream",
    setup="pinned, side = torch.rand(4, 6).pin_memory(), torch.cuda.Stream()", h2d=1, launches=1)
row("kept = loss.to('cpu', non_blocking=True); event = torch.cuda.Event(); event.record(); "
    "event.synchronize(); kept.item()",
    "ATen/cuda/CUDAEvent.h: one wait for the event of a copy that does not block",
    name="read_through_an_event", setup="loss = torch.rand((), device='cuda')", waits=1, d2h=1, launches=0)


# Linear algebra.
ERRORS = "ATen/native/BatchLinearAlgebra.cpp: error codes are read; cuSOLVER may wait by itself"
row("torch.linalg.inv(eye)", ERRORS, waits=1, d2h=1, d2d=None)
row("torch.linalg.cholesky(eye)", ERRORS, waits=1, d2h=1, d2d=None)
row("torch.linalg.solve(eye, eye)", ERRORS, waits=1, d2h=1, d2d=None)
row("torch.linalg.cholesky_ex(eye)", "ATen/native/BatchLinearAlgebra.cpp: no read", d2d=None)
row("torch.linalg.det(eye)", "ATen/native/BatchLinearAlgebra.cpp: no read", d2d=None)
row("torch.linalg.qr(eye)", "ATen/native/BatchLinearAlgebra.cpp: no read", d2d=None)
row("torch.linalg.vector_norm(rows)", "ATen/native/LinearAlgebra.cpp: a reduction", launches=1, allocations=1)
for call in (
    "svd(eye)", "svdvals(eye)", "eigh(eye)", "eigvalsh(eye)", "lstsq(eye, eye)", "pinv(eye)", "eig(eye)",
):
    row(f"torch.linalg.{call}", "cuSOLVER transfers by itself: what waits is recorded",
        waits=None, h2d=None, d2h=None, d2d=None)
row("torch.linalg.matrix_exp(eye)", "ATen/native/LinearAlgebra.cpp, mexp_impl: the norm is read; "
    "a place and the coefficients of a polynomial are copied", waits=3, h2d=2, d2h=1, d2d=None)

# Sparse tensors, and what Thrust does: what waits is recorded.
for code in (
    "rows.to_sparse()", "rows.to_sparse().coalesce()",
    "torch.sparse_coo_tensor(torch.stack([index, index]), y, (4, 6), device='cuda').coalesce()",
    "rows.to_sparse().to_dense()", "torch.sparse.mm(rows.to_sparse(), rows.t())",
    "rows.to_sparse_csr() @ rows.t()", "torch.unique(rows, dim=0)", "torch.rand(2049, device='cuda').mode()",
    "repr(value)", "repr(rows)", "torch.testing.assert_close(x, x.clone())", "torch.isin(x, y)",
    "torch.cdist(rows, rows)", "torch.fft.rfft(big).abs()", "torch.nn.utils.rnn.pad_sequence([x, y])",
    "torch.nn.utils.rnn.pack_padded_sequence(rows.t()[..., None], torch.tensor([6, 5, 4, 3]))",
    "torch.cuda.empty_cache()",
):
    row(code, "nobody has derived it: recorded", waits=None, h2d=None, d2h=None, d2d=None)

row("torch.combinations(x)",
    "ATen/native/Itertools.cpp: two masked_select; from 2.14 on nonzero_static, for as many as there are",
    waits={"2.11": 2, "2.14": 0}, d2h={"2.11": 2, "2.14": 0}, launches={"2.11": 15, "2.14": 10},
    allocations={"2.11": 14, "2.14": 7})

HELPERS.update(
    copy=copy, optim=optim, make_parameters=make_parameters, make_scaled=make_scaled, make_model=make_model,
    AveragedModel=AveragedModel, get_ema_multi_avg_fn=get_ema_multi_avg_fn, DataLoader=DataLoader,
    TensorDataset=TensorDataset, checkpoint=checkpoint, _WIDTHS=_WIDTHS, warnings=warnings,
)
