"""Functions that train, and rows of layers, losses and distributions."""

# The text of a pattern is that of its decorator.
# ruff: noqa: D103
# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from tests.gpu.pattern import UNSTATED, Expected, Pattern, add, pattern, row
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

Work = Callable[[], object]


def make_parameters(count: int = 3) -> list[nn.Parameter]:
    """Return small parameters with gradients."""
    made = [nn.Parameter(torch.rand(5, 4, device="cuda")) for _ in range(count)]
    for each in made:
        each.grad = torch.rand_like(each)
    return made


optim = torch.optim
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


@pattern("torch/optim/optimizer.py: gradients are dropped", launches=0, allocations=0)
def zero_grad() -> Work:
    return optim.SGD(make_parameters()).zero_grad


@pattern("torch/optim/optimizer.py: zero_ of each gradient", launches=3, allocations=0)
def zero_grad_in_place() -> Work:
    stepper = optim.SGD(make_parameters())
    return lambda: stepper.zero_grad(set_to_none=False)


@pattern("torch/optim/optimizer.py: _foreach_zero_", launches=1, allocations=0)
def zero_grad_in_place_foreach() -> Work:
    stepper = optim.SGD(make_parameters(), foreach=True)
    return lambda: stepper.zero_grad(set_to_none=False)


@pattern("torch/optim/lr_scheduler.py: the host's numbers", launches=0, allocations=0)
def scheduler_step() -> Work:
    stepper = optim.SGD(make_parameters())
    stepper.step()
    schedule = optim.lr_scheduler.CosineAnnealingLR(stepper, 10)
    return schedule.step


@pattern(
    "torch/nn/utils/clip_grad.py: three kernels of _foreach_norm, stack, norm; add, reciprocal, mul, clamp, "
    "and _foreach_mul_",
    launches=10,
    allocations=10,
)
def clip_grad_norm() -> Work:
    parameters = make_parameters()
    return lambda: nn.utils.clip_grad_norm_(parameters, 1.0)


@pattern(
    "torch/nn/utils/clip_grad.py: as without, isnan, abs, eq, logical_or, and a read",
    waits=1,
    d2h=1,
    launches=14,
    allocations=14,
)
def clip_grad_norm_with_error() -> Work:
    parameters = make_parameters()
    return lambda: nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)


@pattern("torch/nn/utils/clip_grad.py: as clip_grad_norm, and a read", waits=1, d2h=1, launches=10)
def clip_grad_norm_read() -> Work:
    parameters = make_parameters()
    return lambda: nn.utils.clip_grad_norm_(parameters, 1.0).item()


@pattern("torch/nn/utils/clip_grad.py: _foreach_clamp_min_, _foreach_clamp_max_", launches=2, allocations=0)
def clip_grad_value() -> Work:
    parameters = make_parameters()
    return lambda: nn.utils.clip_grad_value_(parameters, 1.0)


@pattern("torch/nn/utils/clip_grad.py: _foreach_norm, stack, norm", launches=5, allocations=6)
def get_total_norm() -> Work:
    gradients = [each.grad for each in make_parameters() if each.grad is not None]
    return lambda: nn.utils.get_total_norm(gradients)


def make_scaled(fused: bool = False) -> tuple[Any, torch.optim.Optimizer]:
    """Return a gradient scaler that is in use, and an optimizer with scaled gradients."""
    scaler = torch.amp.GradScaler("cuda")
    stepper = optim.SGD(make_parameters(), fused=fused)
    scaler.scale(torch.ones((), device="cuda"))
    return scaler, stepper


@pattern("torch/amp/grad_scaler.py: one product", launches=1, allocations=1)
def scaler_scale() -> Work:
    scaler, _ = make_scaled()
    loss = torch.rand((), device="cuda")
    return lambda: scaler.scale(loss)


@pattern(
    "torch/amp/grad_scaler.py, unscale_: double, reciprocal, float, full, one walk over the gradients; "
    "_MultiDeviceReplicator copies both numbers",
    d2d=2,
    launches=5,
    allocations=6,
)
def scaler_unscale() -> Work:
    scaler, stepper = make_scaled()
    return lambda: scaler.unscale_(stepper)


@pattern(
    "torch/amp/grad_scaler.py, _maybe_opt_step: whether a gradient overflowed is read",
    waits=1,
    d2h=1,
    d2d=2,
    launches=8,
    allocations=6,
)
def scaler_step() -> Work:
    scaler, stepper = make_scaled()
    return lambda: scaler.step(stepper)


@pattern("torch/amp/grad_scaler.py: fused optimizers look at the overflow themselves", waits=0, d2d=2)
def scaler_step_fused() -> Work:
    scaler, stepper = make_scaled(fused=True)
    return lambda: scaler.step(stepper)


@pattern("torch/amp/grad_scaler.py: _amp_update_scale_", launches=1, allocations=0)
def scaler_update() -> Work:
    scaler, stepper = make_scaled()
    scaler.step(stepper)
    return scaler.update  # type: ignore[no-any-return]


@pattern("torch/amp/grad_scaler.py: the scale is read", waits=1, d2h=1, launches=0)
def scaler_get_scale() -> Work:
    scaler, _ = make_scaled()
    return scaler.get_scale  # type: ignore[no-any-return]


# Autograd.
ZEROED = "ATen/native/Loss.cpp: zeros_like, then one kernel, after two kernels forward and ones"
row("F.mse_loss(weights, weights.detach()).backward()", ZEROED, launches=5, allocations=4)
row("F.huber_loss(weights, weights.detach()).backward()", ZEROED, launches=5, allocations=4)
row(
    "(leaf * 2).sum().backward()",
    "torch/csrc/autograd: mul, sum, ones, and the gradient's product",
    launches=4,
    allocations=4,
)
row(
    "leaf.sum().backward(); (leaf * 2).sum().backward()",
    "torch/csrc/autograd/functions/accumulate_grad.h: a view is cloned, the second gradient is added",
    launches=None,
    d2d=None,
)
row(
    "leaf.max().backward()",
    "torch/csrc/autograd/FunctionsManual.cpp, evenly_distribute_backward: isnan twice, and, eq, or, "
    "sum of truth values, div, mul; max and ones before",
    launches=11,
    allocations=9,
)
row("leaf.prod().backward()", "torch/csrc/autograd/FunctionsManual.cpp: where the zeros are", waits=1, d2h=1)
row(
    "leaf[leaf > -1].sum().backward()",
    "ATen/native/IndexingUtils.h: the mask's indices, forward and backward",
    waits=2,
    d2h=2,
    d2d=None,
)
row("weights[index].sum().backward()", "ATen/native/cuda/Indexing.cu: sorted by CUB", d2d=None)
row(
    "F.embedding(index, weights).sum().backward()",
    "ATen/native/cuda/Embedding.cu: index_select, sum; ones, contiguous, zeros and one kernel",
    launches=6,
    allocations=5,
)
row(
    "torch.autograd.grad(leaf.square().sum(), leaf)",
    "pow, sum, ones; FunctionsManual.cpp, pow_backward: the power of 1, which Pow.cpp copies, mul, mul",
    d2d=1,
    launches=5,
    allocations=6,
)


@pattern("torch/csrc/autograd/engine.cpp: a truth value for each gradient", waits=2, d2h=2)
def detect_anomaly() -> Work:
    leaf = torch.rand(4, device="cuda", requires_grad=True)

    def work() -> None:
        with warnings.catch_warnings(), torch.autograd.set_detect_anomaly(True):
            warnings.simplefilter("ignore")
            (leaf * 2).sum().backward()

    return work


@pattern("torch/utils/checkpoint.py: the generator's state is the host's", waits=0)
def checkpointed_block() -> Work:
    leaf = torch.rand(4, 4, device="cuda", requires_grad=True)

    def block(inputs: torch.Tensor) -> torch.Tensor:
        return (inputs * 2).sin().exp()

    return lambda: checkpoint(block, leaf, use_reentrant=False).sum().backward()


@pattern(
    "torch/autograd/graph.py, save_on_cpu: each saved tensor is copied, both ways with a wait",
    waits=2,
    h2d=1,
    d2h=1,
)
def save_on_cpu() -> Work:
    leaf = torch.rand(4, 4, device="cuda", requires_grad=True)

    def work() -> None:
        with torch.autograd.graph.save_on_cpu():
            loss = leaf.exp().sum()
        loss.backward()

    return work


# Programs around a model.
def make_model() -> nn.Module:
    """Return a small model on the device."""
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)).to("cuda")


@pattern(
    "ATen/native/cuda/Copy.cu: each parameter is copied, with a wait",
    waits=2,
    h2d=2,
    launches=0,
    allocations=2,
)
def model_to_device() -> Work:
    model = nn.Linear(6, 5)
    return lambda: model.to("cuda")


@pattern("torch/nn/modules/module.py: each parameter is converted", launches=2, allocations=2)
def model_half() -> Work:
    model = nn.Linear(6, 5, device="cuda")
    return model.half


@pattern("ATen/native/cuda/Copy.cu: a wait for each tensor", waits=4, d2h=4, launches=0, allocations=0)
def state_dict_to_host() -> Work:
    model = make_model()
    return lambda: {name: each.cpu() for name, each in model.state_dict().items()}


@pattern(
    "torch/serialization.py: each storage is copied to the host", waits=4, d2h=4, launches=0, allocations=0
)
def save() -> Work:
    model = make_model()
    return lambda: torch.save(model.state_dict(), io.BytesIO())


@pattern(
    "torch/serialization.py: each storage is copied to the device", waits=4, h2d=4, launches=0, allocations=4
)
def load_to_device() -> Work:
    saved = io.BytesIO()
    torch.save(make_model().state_dict(), saved)
    saved.seek(0)
    return lambda: torch.load(saved, map_location="cuda")


@pattern("torch/nn/modules/module.py: copy_ of each parameter", d2d=4, launches=0, allocations=0)
def load_state_dict() -> Work:
    model, state = make_model(), make_model().state_dict()
    return lambda: model.load_state_dict(state)


@pattern("torch/nn/parameter.py: a clone of each", d2d=4, launches=0, allocations=4)
def deepcopy_of_a_model() -> Work:
    model = make_model()
    return lambda: copy.deepcopy(model)


@pattern("ATen/native/cuda: mul_ and add_ of each parameter", launches=8, allocations=0)
def moving_average_in_a_loop() -> Work:
    model, slow = make_model(), make_model()

    @torch.no_grad()
    def work() -> None:
        for old, new in zip(slow.parameters(), model.parameters(), strict=True):
            old.mul_(0.99).add_(new, alpha=0.01)

    return work


@pattern(
    "torch/optim/swa_utils.py: how many were averaged is a tensor of the host, which is copied with a wait",
    waits=1,
    h2d=1,
    launches=1,
    allocations=1,
)
def averaged_model() -> Work:
    model = make_model()
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    averaged.update_parameters(model)
    return lambda: averaged.update_parameters(model)


@pattern("argmax, eq, float, mean; ATen/native/cuda/CUDAScalar.cu", waits=1, d2h=1, launches=4, allocations=4)
def accuracy() -> Work:
    logits, labels = torch.rand(8, 5, device="cuda"), torch.randint(5, (8,), device="cuda")
    return lambda: (logits.argmax(-1) == labels).float().mean().item()


@pattern(
    "topk and its sort, eq, any, float, sum; ATen/native/cuda/CUDAScalar.cu",
    waits=1,
    d2h=1,
    launches=6,
    allocations=6,
)
def top_k_accuracy() -> Work:
    logits, labels = torch.rand(8, 5, device="cuda"), torch.randint(5, (8,), device="cuda")
    return lambda: logits.topk(2).indices.eq(labels[:, None]).any(-1).float().sum().item()


@pattern("ATen/native/cuda/SummaryOps.cu: both bounds are read", waits=2, d2h=2)
def confusion_matrix() -> Work:
    guessed, labels = torch.randint(5, (8,), device="cuda"), torch.randint(5, (8,), device="cuda")
    return lambda: (labels * 5 + guessed).bincount(minlength=25).view(5, 5)


@pattern("ATen/native/cuda/CUDAScalar.cu: each loss is read", waits=3, d2h=3, launches=3, allocations=3)
def losses_read_one_by_one() -> Work:
    batches = torch.rand(3, 4, device="cuda")
    return lambda: [batch.mean().item() for batch in batches]


@pattern("ATen/native/cuda/Shape.cu: one stack, read once", waits=1, d2h=1, launches=4, allocations=4)
def losses_read_at_once() -> Work:
    batches = torch.rand(3, 4, device="cuda")
    return lambda: torch.stack([batch.mean() for batch in batches]).tolist()


@pattern(
    "ATen/native/cuda/CUDAScalar.cu: isnan of each gradient is read",
    waits=3,
    d2h=3,
    launches=6,
    allocations=6,
)
def nan_check_of_every_gradient() -> Work:
    parameters = make_parameters()
    return lambda: [bool(torch.isnan(each.grad).any()) for each in parameters if each.grad is not None]


@pattern(
    "torch/utils/data/_utils/pin_memory.py: batches are pinned, and copied without a wait",
    h2d=2,
    allocations=2,
)
def loader_with_pinned_memory() -> Work:
    loader = DataLoader(TensorDataset(torch.rand(8, 3)), batch_size=4, pin_memory=True)
    return lambda: [batch.to("cuda", non_blocking=True) for (batch,) in loader]


@pattern(
    "ATen/native/cuda/Copy.cu: each batch is copied with a wait", waits=2, h2d=2, launches=0, allocations=2
)
def loader_without_pinned_memory() -> Work:
    loader = DataLoader(TensorDataset(torch.rand(8, 3)), batch_size=4)
    return lambda: [batch.to("cuda") for (batch,) in loader]


@pattern("cuBLAS, and kernels of ATen: nothing is read", waits=0)
def training_step() -> Work:
    model = make_model()
    stepper = optim.AdamW(model.parameters())
    inputs, labels = torch.rand(8, 6, device="cuda"), torch.randint(4, (8,), device="cuda")

    def work() -> None:
        stepper.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        stepper.step()

    work()
    return work


@pattern("as training_step, and torch/amp: one read in step()", waits=1, d2h=1, d2d=2)
def mixed_precision_step() -> Work:
    model = make_model()
    stepper = optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    inputs, labels = torch.rand(8, 6, device="cuda"), torch.randint(4, (8,), device="cuda")

    def work() -> None:
        stepper.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(inputs), labels)
        scaler.scale(loss).backward()
        scaler.step(stepper)
        scaler.update()

    work()
    return work


@pattern("as training_step, four times before one step", waits=0)
def gradient_accumulation() -> Work:
    model = make_model()
    stepper = optim.SGD(model.parameters())
    inputs, labels = torch.rand(8, 6, device="cuda"), torch.randint(4, (8,), device="cuda")

    def work() -> None:
        stepper.zero_grad()
        for _ in range(4):
            (F.cross_entropy(model(inputs), labels) / 4).backward()
        stepper.step()

    work()
    return work


# Lists of tensors.
FOREACH = "ATen/native/cuda/MultiTensorApply.cuh: one walk over the lists"
row("torch._foreach_add([x, x, x], 1.0)", FOREACH, launches=1, allocations=3)
row("torch._foreach_add_([x, y, rows], 1.0)", FOREACH, launches=1, allocations=0)
row("torch._foreach_mul_([x, y], value)", FOREACH, launches=1, allocations=0)
row("torch._foreach_copy_([x, y], [x.clone(), y.clone()])", FOREACH, d2d=2, launches=1, allocations=2)
row("torch._foreach_zero_([x, y, rows])", FOREACH, launches=1, allocations=0)
row("torch._foreach_norm([x, y, rows])", "ATen/native/cuda/ForeachReduceOp.cu", launches=3, allocations=4)
row(
    "torch._foreach_add_([x, x], [x, x], alpha=value)",
    "python_arg_parser.cpp: the number is read",
    waits=1,
    d2h=1,
)
row(
    "torch._foreach_add_([rows, half], 1.0)", f"{FOREACH}; of two types one by one", launches=2, allocations=0
)
TABLES = "ATen/native/cuda/MultiTensorApply.cuh: tables of 4 KiB in 2.11, of 32 KiB for CUDA 13 from 2.12 on"


@pattern(TABLES, launches={"2.11": 5, "2.12": 1}, allocations=0)
def foreach_of_500_tensors() -> Work:
    tensors = [torch.rand(2, device="cuda") for _ in range(500)]
    return lambda: torch._foreach_add_(tensors, 1.0)


@pattern(f"{TABLES}; zeros, the norms, two sums of 400", launches={"2.11": 8, "2.12": 4}, allocations=501)
def foreach_norm_of_500_tensors() -> Work:
    tensors = [torch.rand(2, device="cuda") for _ in range(500)]
    return lambda: torch._foreach_norm(tensors)


@pattern(f"{TABLES}; depth 2", launches={"2.11": 2, "2.12": 1}, allocations=0)
def foreach_of_100_pairs() -> Work:
    left, right = ([torch.rand(2, device="cuda") for _ in range(100)] for _ in range(2))
    return lambda: torch._foreach_add_(left, right)


# Losses.
LOSS = "ATen/native/Loss.cpp: the elements' losses, then a reduction"
row("F.mse_loss(rows, rows)", LOSS, launches=2, allocations=2)
row("F.smooth_l1_loss(rows, rows)", LOSS, launches=2, allocations=2)
row("F.huber_loss(rows, rows)", LOSS, launches=2, allocations=2)
row("F.l1_loss(rows, rows)", "ATen/native/Loss.cpp: sub, abs, mean", launches=3, allocations=3)
row(
    "F.binary_cross_entropy(rows, rows)",
    "ATen/native/cuda/Loss.cu: the losses, their mean, and its copy over the losses",
    d2d=1,
    launches=2,
    allocations=2,
)
row(
    "F.binary_cross_entropy_with_logits(rows, rows)",
    "ATen/native/Loss.cpp: log_sigmoid, fill, sub, mul, sub, mean",
    launches=6,
    allocations=3,
)
row("F.cross_entropy(rows, classes)", "ATen/native/cuda: log_softmax, nll_loss", launches=2, allocations=3)
row("F.cross_entropy(rows, classes, label_smoothing=0.1)", "ATen/native/LossNLL.cpp: nothing is read")
row("F.cross_entropy(rows, classes, ignore_index=0)", "ATen/native/cuda/NLLLoss2d.cu: no read", launches=2)
row("F.nll_loss(rows, classes)", "ATen/native/cuda/Loss.cu: one kernel", launches=1, allocations=2)
row("F.kl_div(rows, rows)", "ATen/native/Loss.cpp: nothing is read")
row("F.cosine_similarity(rows, rows)", "ATen/native/Distance.cpp: nothing is read", d2d=None)
row(
    "F.ctc_loss(rows[:, None], index[None, 1:], torch.tensor([4]), torch.tensor([2]))",
    "ATen/native/cuda/LossCTC.cu: three lists, and one in LossCTC.cpp, are copied; what the question for "
    "cuDNN (asked twice) reads of the targets is recorded",
    waits=None,
    h2d=4,
    d2h=None,
    d2d=None,
)

# Layers.
row(
    "F.layer_norm(big, (1024,))",
    "ATen/native/cuda/layer_norm_kernel.cu: whole vectors",
    launches=1,
    allocations=3,
)
row(
    "F.layer_norm(rows, (6,))",
    "ATen/native/cuda/layer_norm_kernel.cu: moments first",
    launches=2,
    allocations=3,
)
row(
    "F.group_norm(rows.view(2, 4, 3), 2)",
    "ATen/native/cuda/group_norm_kernel.cu: moments, then the result",
    launches=2,
    allocations=3,
)
row(
    "F.rms_norm(big, (1024,))",
    "ATen/native/cuda/layer_norm_kernel.cu: _fused_rms_norm",
    launches=1,
    allocations=2,
)
row("F.batch_norm(rows, None, None, training=True)", "cuDNN or ATen: nothing is read", d2d=None)
row("F.normalize(rows)", "torch/nn/functional.py: norm, clamp_min, div", launches=3, allocations=3)
row("F.pad(rows, (1, 1))", "ATen/native/PadNd.cpp: a fill, then a copy", launches=2, allocations=1)
row("F.max_pool1d(rows[None], 2)", "ATen/native/MaxPooling.cpp: with places", launches=1, allocations=2)
row("F.max_pool2d(rows[None], 2)", "ATen/native/cuda/DilatedMaxPool2d.cu", launches=1, allocations=2)
row("F.avg_pool2d(rows[None], 2)", "ATen/native/cuda/AveragePool2d.cu", launches=1, allocations=1)
row(
    "F.adaptive_avg_pool2d(rows[None], 1)",
    "ATen/native/AdaptiveAveragePooling.cpp: mean",
    launches=1,
    allocations=1,
)
row("F.interpolate(rows[None, None], scale_factor=2.0)", "ATen/native/cuda/UpSampleNearest2d.cu", launches=1)
row(
    "F.interpolate(rows[None, None], scale_factor=2.0, mode='bilinear')",
    "ATen/native/cuda/UpSampleBilinear2d.cu",
    launches=1,
    allocations=1,
)
row("F.pixel_shuffle(rows.view(1, 4, 2, 3), 2)", "ATen/native/PixelShuffle.cpp: a permuted view", launches=1)
row(
    "F.unfold(rows[None, None], 2)",
    "ATen/native/cuda/Im2Col.cu: a result like the input, which resize_ copies into a larger one; then one "
    "kernel an image",
    d2d=1,
    launches=1,
    allocations=2,
)
row("F.glu(rows)", "ATen/native/cuda/ActivationGluKernel.cu", launches=1, allocations=1)
row(
    "F.softmax(half, -1, dtype=torch.float)",
    "ATen/native/cuda/SoftMax.cu: half_to_float",
    launches=1,
    allocations=1,
)
row(
    "F.log_softmax(half, -1, dtype=torch.float)",
    "ATen/native/cuda/SoftMax.cu: half_to_float",
    launches=1,
    allocations=1,
)


@pattern("torch/amp/autocast_mode.py, ATen/autocast_mode.h: fp32 by half_to_float", launches=1, allocations=1)
def softmax_under_autocast() -> Work:
    half = torch.rand(4, 6, device="cuda").half()

    def work() -> torch.Tensor:
        with torch.autocast("cuda"):
            return half.softmax(-1)

    return work


@pattern("ATen/native/cuda/layer_norm_kernel.cu: _fused_rms_norm", launches=1, allocations=2)
def rms_norm_with_gradients() -> Work:
    layer = nn.RMSNorm(1024, device="cuda")
    inputs = torch.rand(1024, 1024, device="cuda", requires_grad=True)
    return lambda: layer(inputs)


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


@pattern("ATen/native/cuda/RNN.cu: two products of cuBLAS, then one fused kernel", d2d=None)
def lstm_cell() -> Work:
    cell, inputs = nn.LSTMCell(8, 16, device="cuda"), torch.rand(2, 8, device="cuda")
    return lambda: cell(inputs)


@pattern("ATen/native/cuda/RNN.cu: two products of cuBLAS, then one fused kernel", d2d=None)
def gru_cell() -> Work:
    cell, inputs = nn.GRUCell(8, 16, device="cuda"), torch.rand(2, 8, device="cuda")
    return lambda: cell(inputs)


row("rows @ rows.t()", "ATen/native/cuda/Blas.cpp: cuBLAS")
row("F.linear(rows, rows, rows[0, :4])", "ATen/native/cuda/Blas.cpp: cuBLAS")
row("torch.bmm(big[None], big[None])", "ATen/native/cuda/Blas.cpp: cuBLAS")
row("torch.einsum('ij,kj->ik', rows, rows)", "ATen/native/Linear.cpp: bmm")
row("F.conv2d(big[None, None], rows[None, None])", "ATen/native/Convolution.cpp: cuDNN", d2d=None)
ATTENTION = "ATen/native/transformers/cuda/attention.cu: nothing is read"
row("F.scaled_dot_product_attention(rows[None], rows[None], rows[None])", ATTENTION, d2d=None)
row(
    "F.scaled_dot_product_attention(*[torch.rand(2, 4, 8, 16, device='cuda').half()] * 3, is_causal=True)",
    ATTENTION,
    d2d=None,
)


@pattern("ATen/native/transformers/cuda/attention.cu: nothing is read", d2d=None)
def transformer_layer_in_training() -> Work:
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True).to("cuda")
    tokens = torch.rand(2, 10, 32, device="cuda", requires_grad=True)
    return lambda: layer(tokens).sum().backward()


# The 7 waits recorded: whether the mask is one of padding is read, and the lengths that it gives; each of two
# layers is told the cumulative lengths of queries and of keys, with a wait for both; sizes are copied as the
# padding is left out, without a wait, and as it is put back, with one.
@pattern(
    "torch/nn/modules/transformer.py: a nested tensor of the padding mask; what waits is recorded",
    waits=None,
    h2d=None,
    d2h=None,
    d2d=None,
)
def transformer_in_evaluation_with_padding() -> Work:
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = nn.TransformerEncoder(layer, 2).to("cuda").eval()
    tokens = torch.rand(2, 10, 32, device="cuda")
    padding = torch.zeros(2, 10, dtype=torch.bool, device="cuda")
    padding[1, 7:] = True

    def work() -> object:
        with torch.no_grad():
            return encoder(tokens, src_key_padding_mask=padding)

    return work


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


@pattern("ATen/native/cudnn/Conv_v8.cpp: each plan is timed; what waits is recorded", waits=None, d2d=None)
def first_convolution_of_a_benchmark() -> Work:
    # Each call has a shape of its own, since a shape is tried once.
    width = 32 + len(_WIDTHS)
    _WIDTHS.append(width)
    layer, images = nn.Conv2d(3, 8, 3, device="cuda"), torch.rand(2, 3, 32, width, device="cuda")

    def work() -> object:
        with torch.backends.cudnn.flags(enabled=True, benchmark=True), torch.no_grad():
            return layer(images)

    return work


_WIDTHS: list[int] = []

POINTERS = "ATen/native/cuda/TensorShape.cu: addresses are pinned and copied without a wait"


@pattern(POINTERS, h2d=1, launches=1, allocations=1)
def chunk_cat_into_a_tensor() -> Work:
    tensors = [torch.rand(4, 6, device="cuda"), torch.rand(2, 6, device="cuda")]
    out = torch.empty(2, 18, device="cuda")
    return lambda: torch._chunk_cat(tensors, dim=0, num_chunks=2, out=out)


@pattern(POINTERS, h2d=1, launches=1, allocations=1)
def split_with_sizes_copy_into_tensors() -> Work:
    flat = torch.rand(2, 12, device="cuda")
    parts = [torch.empty(2, 4, device="cuda"), torch.empty(2, 8, device="cuda")]
    return lambda: torch.split_with_sizes_copy(flat, [4, 8], dim=1, out=parts)


def deterministically(work: Work) -> Work:
    """Return the work under deterministic algorithms."""

    def run() -> object:
        torch.use_deterministic_algorithms(True)
        try:
            return work()
        finally:
            torch.use_deterministic_algorithms(False)

    return run


@pattern("torch/utils/deterministic.py: fill_uninitialized_memory", launches=1, allocations=1)
def empty_when_deterministic() -> Work:
    return deterministically(lambda: torch.empty(4, device="cuda"))


@pattern("ATen/native/TensorAdvancedIndexing.cpp: sorted, as to accumulate", d2d=None)
def index_put_when_deterministic() -> Work:
    x, y = torch.rand(8, device="cuda"), torch.rand(3, device="cuda")
    index = torch.tensor([0, 2, 1], device="cuda")
    return deterministically(lambda: x.__setitem__(index, y))


# Distributions.
CHECK = "torch/distributions/distribution.py: the check of each parameter, and of a value, is read"
STD = "ATen/native/DistributionTemplates.h: deviations are checked twice, by _assert_async from 2.14 on"
row(
    "torch.normal(y, y + 1)",
    STD,
    waits={"2.11": 2, "2.14": 0},
    d2h={"2.11": 2, "2.14": 0},
    launches={"2.11": 8, "2.14": 10},
)
row(
    "torch.normal(0.0, y + 1)",
    STD,
    waits={"2.11": 2, "2.14": 0},
    d2h={"2.11": 2, "2.14": 0},
    launches={"2.11": 9, "2.14": 11},
)
row("torch.normal(y, 1.0)", STD, d2d=None)
row("distributions.Normal(x, x + 1)", CHECK, waits=2, d2h=2)
row(
    "distributions.Normal(x, x + 1).sample()",
    f"{CHECK}; {STD}",
    waits={"2.11": 4, "2.14": 2},
    d2h={"2.11": 4, "2.14": 2},
    launches={"2.11": 12, "2.14": 14},
)
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
row("event = torch.cuda.Event(); event.record(); event.query()", "ATen/cuda/CUDAEvent.h")
row("torch.cuda.current_stream().query()", "c10/cuda/CUDAStream.h")
row("x.record_stream(torch.cuda.Stream())", "c10/cuda/CUDACachingAllocator.cpp: when it is freed")
row("torch.cuda.current_stream().wait_stream(torch.cuda.Stream())", "cudaStreamWaitEvent: the device waits")
row("torch.cuda.manual_seed(3)", "torch/cuda/random.py: the state is the host's")
row("torch.cuda.set_rng_state(torch.cuda.get_rng_state())", "torch/cuda/random.py: the state is the host's")


@pattern("ATen/native/cuda/Copy.cu: the side stream copies, and the device waits for it", h2d=1, launches=1)
def prefetch_on_a_side_stream() -> Work:
    pinned, side = torch.rand(4, 6).pin_memory(), torch.cuda.Stream()

    def work() -> torch.Tensor:
        with torch.cuda.stream(side):
            batch = pinned.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        batch.record_stream(torch.cuda.current_stream())
        return batch * 2

    return work


@pattern(
    "ATen/cuda/CUDAEvent.h: one wait for the event of a copy that does not block", waits=1, d2h=1, launches=0
)
def read_through_an_event() -> Work:
    loss = torch.rand((), device="cuda")

    def work() -> float:
        kept = loss.to("cpu", non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        event.synchronize()
        return kept.item()

    return work


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
    "svd(eye)",
    "svdvals(eye)",
    "eigh(eye)",
    "eigvalsh(eye)",
    "lstsq(eye, eye)",
    "pinv(eye)",
    "eig(eye)",
):
    row(
        f"torch.linalg.{call}",
        "cuSOLVER transfers by itself: what waits is recorded",
        waits=None,
        h2d=None,
        d2h=None,
        d2d=None,
    )
row(
    "torch.linalg.matrix_exp(eye)",
    "ATen/native/LinearAlgebra.cpp, mexp_impl: the norm is read; a place and the coefficients of a "
    "polynomial are copied",
    waits=3,
    h2d=2,
    d2h=1,
    d2d=None,
)

# Sparse tensors, and what Thrust does: what waits is recorded.
for code in (
    "rows.to_sparse()",
    "rows.to_sparse().coalesce()",
    "torch.sparse_coo_tensor(torch.stack([index, index]), y, (4, 6), device='cuda').coalesce()",
    "rows.to_sparse().to_dense()",
    "torch.sparse.mm(rows.to_sparse(), rows.t())",
    "rows.to_sparse_csr() @ rows.t()",
    "torch.unique(rows, dim=0)",
    "torch.rand(2049, device='cuda').mode()",
    "repr(value)",
    "repr(rows)",
    "torch.testing.assert_close(x, x.clone())",
    "torch.isin(x, y)",
    "torch.cdist(rows, rows)",
    "torch.fft.rfft(big).abs()",
    "torch.nn.utils.rnn.pad_sequence([x, y])",
    "torch.nn.utils.rnn.pack_padded_sequence(rows.t()[..., None], torch.tensor([6, 5, 4, 3]))",
    "torch.cuda.empty_cache()",
):
    row(code, "nobody has derived it: recorded", waits=None, h2d=None, d2h=None, d2d=None)

row(
    "torch.combinations(x)",
    "ATen/native/Itertools.cpp: two masked_select; from 2.14 on nonzero_static, for as many as there are",
    waits={"2.11": 2, "2.14": 0},
    d2h={"2.11": 2, "2.14": 0},
    launches={"2.11": 15, "2.14": 10},
    allocations={"2.11": 14, "2.14": 7},
)
