"""Rows of parts of programs: checkpoints, clipping, scaling, averages, models, metrics, decoding."""

# A table: a row may take two lines, and is not wrapped further.
# fmt: off
# The text of a pattern is that of its decorator.
# ruff: noqa: D103
# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from tests.gpu.pattern import HELPERS, UNSTATED, Expected, Pattern, add, row
from tests.gpu.patterns_training import Work
from torch import Tensor, nn
from torch.optim import swa_utils

READ = "ATen/native/cuda/CUDAScalar.cu: one value, one wait"
NONE = "nothing is read"

# Optimizers and their state.
row("stepper.state_dict()", "the state is referred to", name="optimizer_state_dict",
    setup="stepper = optim.Adam(make_parameters()); stepper.step()", launches=0)
row("other.load_state_dict(state)", "optimizer.py: what is on its device is kept; the step stays",
    name="optimizer_load_state_dict",
    setup="stepper, other = optim.Adam(make_parameters()), optim.Adam(make_parameters()); stepper.step(); "
    "other.step(); state = stepper.state_dict()", launches=0)
row("other.load_state_dict(state)", "two moments of each of three", name="optimizer_resumed_from_the_host",
    setup="stepper, other = optim.Adam(make_parameters()), optim.Adam(make_parameters()); stepper.step(); "
    "saved = io.BytesIO(); torch.save(stepper.state_dict(), saved); saved.seek(0); "
    "state = torch.load(saved, map_location='cpu')", waits=6, h2d=6, launches=0)
row("copy.deepcopy(stepper.state_dict())", "two moments of each of three",
    name="deepcopy_of_an_optimizer_state", setup="stepper = optim.Adam(make_parameters()); stepper.step()",
    d2d=6, launches=0)
row("torch.save({'model': model.state_dict(), 'optimizer': stepper.state_dict(), 'epoch': 3}, io.BytesIO())",
    "two parameters, four moments; steps are the host's", name="save_of_a_checkpoint",
    setup="model = nn.Linear(6, 5, device='cuda'); stepper = optim.Adam(model.parameters()); "
    "model(torch.rand(2, 6, device='cuda')).sum().backward(); stepper.step()", waits=6, d2h=6, launches=0)
row("schedule.step(loss)", "lr_scheduler.py: float(metrics)", name="plateau_scheduler",
    setup="schedule = optim.lr_scheduler.ReduceLROnPlateau(optim.SGD(make_parameters())); "
    "loss = torch.rand((), device='cuda')", waits=1, d2h=1, launches=0)

# Clipping, scaling, averages.
CLIP = "clip_grad.py"
row("nn.utils.clip_grad_norm_(made, 1.0, norm_type=math.inf)",
    f"{CLIP}: three of _foreach_norm, stack, norm; add, reciprocal, mul, clamp, mul",
    name="clip_by_the_largest", setup="made = make_parameters()", launches=10)
row("nn.utils.clip_grad_norm_(made, 1.0, norm_type=1)", f"{CLIP}: as for 2", name="clip_by_the_sum",
    setup="made = make_parameters()", launches=10)
row("nn.utils.clip_grad_norm_(made, 1.0, norm_type=3)",
    f"{CLIP}: norms one by one, stack, norm; add, reciprocal, mul, clamp, mul", name="clip_by_the_third_norm",
    setup="made = make_parameters()", launches=10)
row("nn.utils.clip_grad_norm_(made, 1.0, foreach=False)", f"{CLIP}: 3 norms, stack, norm; 4; 3 products",
    name="clip_in_a_loop", setup="made = make_parameters()", launches=12, allocations=9)
row("nn.utils.clip_grad_value_(made, 1.0, foreach=False)", f"{CLIP}: a clamp each",
    name="clip_values_in_a_loop", setup="made = make_parameters()", launches=3)
row("nn.utils.clip_grads_with_norm_(made, 1.0, norm)", f"{CLIP}: add, reciprocal, mul, clamp, mul",
    name="clip_with_a_norm",
    setup="made = make_parameters(); norm = nn.utils.get_total_norm([each.grad for each in made])",
    launches=5)
row("torch.sqrt(sum(each.grad.norm() ** 2 for each in made))", "3 norms, 3 squares, 3 additions, a root",
    name="total_norm_by_sum", setup="made = make_parameters()", launches=10)
row("sum(each.grad.data.norm(2).item() ** 2 for each in made) ** 0.5", READ, name="total_norm_by_items",
    setup="made = make_parameters()", waits=3, d2h=3, launches=3)
row("vector = nn.utils.parameters_to_vector(made); nn.utils.vector_to_parameters(vector, made)", "cat; views",
    name="parameters_as_one_vector", setup="made = make_parameters()", launches=1)
row("scaler.unscale_(stepper); nn.utils.clip_grad_norm_(stepper.param_groups[0]['params'], 1.0); "
    "scaler.step(stepper)", "unscale 5, clip 10, a read, SGD 1", name="scaler_with_clipping",
    setup="scaler, stepper = make_scaled(None)", waits=1, d2h=1, d2d=2, launches=16)
row("scaler.step(stepper); scaler.step(other); scaler.update()",
    "unscale_ 5 and SGD 1 each; a read each; update adds two overflows", name="scaler_of_two_optimizers",
    setup="scaler, stepper = make_scaled(None); other = optim.SGD(make_parameters())", waits=2, d2h=2, d2d=4,
    launches=14)
row("scaler.step(stepper)", "unscale_ alone; a read; no step", name="scaler_that_skips",
    setup="scaler, stepper = make_scaled(None); stepper.param_groups[0]['params'][0].grad.fill_(math.inf)",
    waits=1, d2h=1, d2d=2, launches=5)
row("scaler.state_dict()", "scale and growth", name="scaler_state_dict", setup="scaler, _ = make_scaled()",
    waits=2, d2h=2, launches=0)
row("scaler.load_state_dict(state)", "two fills", name="scaler_load_state_dict",
    setup="scaler, _ = make_scaled(); state = scaler.state_dict()", launches=2)
row("torch.amp.GradScaler('cuda').scale(loss)", "two fills and a product", name="first_scale_of_a_scaler",
    setup="loss = torch.rand((), device='cuda')", launches=3)
row("scaler.scale(losses)", "one replica, two products", name="scale_of_two_losses",
    setup="scaler, _ = make_scaled(); losses = [torch.rand((), device='cuda') for _ in range(2)]", d2d=1,
    launches=2)
row("scaler.update(1024.0)", "one fill", name="scaler_update_to_a_number", setup="scaler, _ = make_scaled()",
    launches=1)
row("(scaler.scale(loss), scaler.get_scale(), scaler.update())", "host", name="scaler_that_is_disabled",
    setup="scaler = torch.amp.GradScaler('cuda', enabled=False); loss = torch.rand((), device='cuda')",
    launches=0)
row("averaged.update_parameters(model)", "swa_utils.py: the number is copied; the weight of lerp is read",
    name="stochastic_weight_averaging",
    setup="model = nn.Linear(6, 5, device='cuda'); averaged = swa_utils.AveragedModel(model); "
    "averaged.update_parameters(model)", waits=2, h2d=1, d2h=1, launches=None)
row("swa_utils.update_bn(batches, model, device='cuda')",
    "two batches are copied; each reads num_batches_tracked", name="update_of_batch_norm",
    setup="model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5)).to('cuda'); "
    "batches = [torch.rand(4, 6), torch.rand(4, 6)]", waits=4, h2d=2, d2h=2, d2d=None)
row("layer(inputs)", "batchnorm.py: float(num_batches_tracked)", name="batch_norm_of_cumulative_average",
    setup="layer, inputs = nn.BatchNorm1d(5, momentum=None, device='cuda'), torch.rand(4, 5, device='cuda')",
    waits=1, d2h=1, d2d=None)

# Models.
row("layer.to('cuda')", "weight, bias, mean, var, count", name="batch_norm_to_device",
    setup="layer = nn.BatchNorm2d(4)", waits=5, h2d=5, launches=0)
row("model.load_state_dict(state)", "copy_ of each from the host", name="load_state_dict_of_the_host",
    setup="model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 4)).to('cuda'); "
    "state = {name: each.cpu() for name, each in model.state_dict().items()}", waits=4, h2d=4, launches=0)
row("model.load_state_dict(state, assign=True)", "assigned", name="load_state_dict_by_assignment",
    setup="model = nn.Linear(6, 5, device='cuda'); "
    "state = {name: each.clone() for name, each in model.state_dict().items()}", launches=0)
row("sum((each != 0).sum().item() for each in model.parameters())", "ne, a sum of truth values, a read each",
    name="parameters_that_are_not_zero", setup="model = nn.Linear(6, 5, device='cuda')", waits=2, d2h=2,
    launches=6)
row("{name: each.norm().item() for name, each in model.named_parameters()}", "norm and a read each",
    name="logging_of_weight_norms", setup="model = nn.Linear(6, 5, device='cuda')", waits=2, d2h=2,
    launches=2)
row("model.cpu()", "two parameters", name="model_to_host", setup="model = nn.Linear(6, 5, device='cuda')",
    waits=2, d2h=2, launches=0)
row("(model.train(), model.eval(), sum(p.numel() for p in model.parameters()), repr(model), "
    "model.requires_grad_(False))", "host", name="modes_and_counts_of_a_model",
    setup="model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5)).to('cuda')", launches=0)
INIT, WEIGHT = "torch/nn/init.py", "w = torch.empty(4, 3, device='cuda')"
row("nn.init.kaiming_uniform_(w)", INIT, name="init kaiming_uniform_", setup=WEIGHT, launches=1)
row("nn.init.xavier_normal_(w)", INIT, name="init xavier_normal_", setup=WEIGHT, launches=1)
row("nn.init.constant_(w, 0.5)", INIT, name="init constant_", setup=WEIGHT, launches=1)
row("nn.init.eye_(w)", INIT, name="init eye_", setup=WEIGHT, launches=2)
row("nn.init.dirac_(w)", INIT, name="init dirac_", setup="w = torch.empty(3, 3, 3, device='cuda')", waits=3,
    h2d=3, launches=1)
row("nn.init.sparse_(w, 0.5)", INIT, name="init sparse_", setup=WEIGHT, waits=6, h2d=6)
row("nn.init.orthogonal_(w)", INIT, name="init orthogonal_", setup=WEIGHT, waits=None, d2h=None, h2d=None,
    d2d=None)


def layer(
    name: str, make: Callable[[], nn.Module], size: tuple[int, ...], training: bool = True,
    source: str = NONE, dtype: torch.dtype = torch.float32,
    call: Callable[[Any, Tensor], Any] | None = None, **numbers: Expected,
) -> None:
    """Add a pattern of a layer: forward and backward, or forward alone in evaluation."""

    def build() -> Work:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = make().to("cuda", dtype).train(training)
        inputs = torch.rand(size, device="cuda", dtype=dtype, requires_grad=training)

        def work() -> object:
            with torch.set_grad_enabled(training):
                made = call(module, inputs) if call else module(inputs)
                if training:
                    (made[0] if isinstance(made, tuple) else made).sum().backward()
                return made

        return work

    add(Pattern(f"layer {name}", build, source, UNSTATED | {"d2d": None} | numbers))


layer("BatchNorm2d in training", lambda: nn.BatchNorm2d(4), (2, 4, 6, 6))
layer("BatchNorm2d in evaluation", lambda: nn.BatchNorm2d(4), (2, 4, 6, 6), False)
layer("GroupNorm", lambda: nn.GroupNorm(2, 4), (2, 4, 6, 6))
layer("Conv1d in bfloat16", lambda: nn.Conv1d(4, 8, 3), (2, 4, 16), dtype=torch.bfloat16)
layer("ConvTranspose2d", lambda: nn.ConvTranspose2d(4, 2, 2, stride=2), (2, 4, 6, 6))
layer("MaxPool2d", lambda: nn.MaxPool2d(2), (2, 4, 6, 6))
layer("Upsample bilinear", lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (2, 4, 6, 6))
layer("ReflectionPad2d", lambda: nn.ReflectionPad2d(1), (2, 4, 6, 6))
layer("PReLU, Softplus, Hardswish, Mish, SiLU, ELU",
    lambda: nn.Sequential(nn.PReLU(), nn.Softplus(), nn.Hardswish(), nn.Mish(), nn.SiLU(), nn.ELU()), (4, 6))
layer("Bilinear", lambda: nn.Bilinear(6, 6, 3), (4, 6), call=lambda m, x: m(x, x))
layer("MultiheadAttention with padding", lambda: nn.MultiheadAttention(16, 2, batch_first=True), (2, 5, 16),
    call=lambda m, x: m(x, x, x, key_padding_mask=torch.zeros(2, 5, dtype=torch.bool, device="cuda")))
layer("TransformerEncoder with a causal mask",
    lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 1), (2, 5, 16),
    source="transformer.py, _detect_is_causal_mask: bool((mask == causal).all())", waits=1, d2h=1,
    call=lambda m, x: m(x, mask=nn.Transformer.generate_square_subsequent_mask(5, torch.device("cuda"))))
layer("Linear with spectral norm", lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(6, 5)), (4, 6))
layer("Linear with weight norm", lambda: nn.utils.parametrizations.weight_norm(nn.Linear(6, 5)), (4, 6))
layer("LSTMCell in a loop", lambda: nn.LSTMCell(8, 16), (2, 8), call=lambda m, x: m(x, m(x)))
layer("CosineSimilarity and PairwiseDistance", nn.CosineSimilarity, (4, 6), call=lambda m, x: m(x, x * 2))
layer("Linear under autocast", lambda: nn.Linear(6, 5), (4, 6),
    call=lambda m, x: torch.autocast("cuda", torch.bfloat16)(m)(x))
layer("reentrant checkpoint with dropout", lambda: nn.Sequential(nn.Linear(6, 6), nn.Dropout()), (4, 6),
    call=lambda m, x: torch.utils.checkpoint.checkpoint(m, x, use_reentrant=True))

# Metrics.
def batch_of_predictions() -> tuple[Tensor, Tensor]:
    return torch.rand(8, 5, device="cuda"), torch.randint(5, (8,), device="cuda")

row("(logits.argmax(1) == labels).sum().item() / len(labels)", "argmax, eq, a sum of truth values",
    name="count_of_correct", setup="logits, labels = batch_of_predictions()", waits=1, d2h=1, launches=4)
row("guessed = logits.argmax(1); [((guessed == each) & (labels == each)).sum().item() for each in range(5)]",
    "argmax; for each of five: eq, eq, and, a sum of truth values, a read",
    name="true_positives_class_by_class", setup="logits, labels = batch_of_predictions()", waits=5, d2h=5,
    launches=26)
row("torch.stack([logits[labels == each].sum() for each in range(5)])", "a mask for each class",
    name="mean_class_by_class_by_mask", setup="logits, labels = batch_of_predictions()", waits=5, d2h=5,
    d2d=None)
row("order = scores.argsort(descending=True); hits = labels[order]; "
    "true, false = hits.cumsum(0), (1 - hits).cumsum(0); "
    "torch.trapezoid(true / true[-1], false / false[-1]).item()",
    "sort, gather, two prefix sums, trapezoid; one read", name="area_under_the_curve",
    setup="scores, labels = torch.rand(16, device='cuda'), torch.randint(2, (16,), device='cuda')", waits=1,
    d2h=1, d2d=None)
row("counts = torch.stack([(guessed & labels).sum(), (guessed & ~labels).sum(), (~guessed & labels).sum()]); "
    "true, false, missed = counts.tolist(); 2 * true / max(2 * true + false + missed, 1)",
    "three sums, one stack, one read", name="f1_read_at_once",
    setup="guessed, labels = (torch.randint(2, (16,), device='cuda').bool() for _ in range(2))", waits=1,
    d2h=1, d2d=None)

# Decoding.
row("logits[logits < logits.topk(3)[0][..., -1, None]] = -math.inf; logits", "topk 2, lt, fill by the mask",
    name="top_k_filter", setup="logits = torch.rand(2, 9, device='cuda')", launches=4)
row("score = logits.gather(1, seen); "
    "logits.scatter_(1, seen, torch.where(score < 0, score * 1.2, score / 1.2))",
    "gather, lt, mul, div, where, scatter", name="repetition_penalty",
    setup="logits, seen = torch.rand(2, 9, device='cuda'), torch.randint(9, (2, 4), device='cuda')",
    launches=6)
row("best = logits.log_softmax(-1).view(-1).topk(3); "
    "[(i // 9, i % 9, s) for i, s in zip(best.indices.tolist(), best.values.tolist())]",
    "both lists are read", name="step_of_beam_search_on_the_host",
    setup="logits = torch.rand(3, 9, device='cuda')", waits=2, d2h=2, d2d=None)
row("(draft == real).int().cumprod(-1).sum().item()", "eq, int, cumprod, sum, a read",
    name="accepted_of_a_draft",
    setup="draft, real = (torch.randint(2, (6,), device='cuda') for _ in range(2))", waits=1, d2h=1, d2d=None)
row("(keys.index_copy_(2, place, new), values.index_copy_(2, place, new))", "index_copy_ of each",
    name="static_cache_by_index_copy",
    setup="keys, values = (torch.zeros(1, 2, 8, 4, device='cuda') for _ in range(2)); "
    "new, place = torch.rand(1, 2, 1, 4, device='cuda'), torch.tensor([3], device='cuda')", launches=2)
row("keys[:, :, place] = new; values[:, :, place] = new", "a place without dimensions is read, for each",
    name="static_cache_by_a_scalar_place",
    setup="keys, values = (torch.zeros(1, 2, 8, 4, device='cuda') for _ in range(2)); "
    "new, place = torch.rand(1, 2, 4, device='cuda'), torch.tensor(3, device='cuda')", waits=2, d2h=2,
    d2d=None)
row("lengths = mask.sum(-1, dtype=torch.int32); "
    "kept = torch.nonzero(mask.flatten(), as_tuple=False).flatten(); longest = lengths.max().item(); "
    "(kept, F.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0)), longest)", "longest is read; nonzero",
    name="unpadding_for_variable_lengths", setup="mask = torch.ones(2, 5, dtype=torch.int32, device='cuda')",
    waits=2, d2h=2, d2d=None)

# Autograd.
row("torch.autograd.functional.jacobian(lambda z: z**2, y)", NONE, name="functional jacobian", d2d=None)
row("torch.autograd.functional.hessian(cube, y)", NONE, name="functional hessian", d2d=None)
row("torch.func.hessian(cube)(y)", NONE, name="functional torch.func.hessian", d2d=None)
row("torch.func.vmap(torch.func.grad(lambda z: z.sin()))(y)", NONE, name="functional vmap of grad", d2d=None)
row("torch.func.jvp(cube, (y,), (y,))", NONE, name="functional jvp", d2d=None)
row("torch.func.vjp(cube, y)[1](y.sum())", NONE, name="functional vjp", d2d=None)
row("torch.func.jacrev(lambda z: z.exp())(y)", NONE, name="functional jacrev", d2d=None)


def cube(inputs: Tensor) -> Tensor:
    return (inputs**3).sum()


HELPERS.update(swa_utils=swa_utils, batch_of_predictions=batch_of_predictions, cube=cube)
