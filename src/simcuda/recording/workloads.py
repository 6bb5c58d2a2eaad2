"""Cases that do what programs do: each builds a workload, and then does one step of it.

Tensors on the device have values that come from the host, so that they are the same on every device.
"""

# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import copy
from collections.abc import Callable, Generator
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.distributions import Categorical, Normal, kl_divergence
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from simcuda.recording.case import Case, Work, seed_all

Steps = Generator[None, None, Any]
"""Builds a workload up to its ``yield``; what follows is one step of it."""

Workload = Callable[[torch.Generator], Steps]

CASES: list[Case] = []
"""A case for each workload."""


def _case(digest: str) -> Callable[[Workload], Workload]:
    """Make a workload a case.

    Recordings know it by its digest, which is given by hand: one that is written otherwise is the same case,
    and one that does other work needs another digest.
    """

    def add(workload: Workload) -> Workload:
        id_ = "workload/" + workload.__name__.replace("_", "-")
        CASES.append(Case(id_, partial(_prepare, workload), digest))
        return workload

    return add


def _prepare(workload: Workload, seed: int) -> Work:
    steps = workload(seed_all(seed))
    next(steps)
    return lambda: next(steps, None)


def uniform(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Floats from 0 to 1."""
    return torch.rand(shape, generator=generator).to("cuda")


def integers(generator: torch.Generator, below: int, *shape: int) -> torch.Tensor:
    """Integers from 0, below a limit."""
    return torch.randint(below, shape, generator=generator).to("cuda")


def flags(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Booleans, a half of them true."""
    return uniform(generator, *shape) < 0.5


def perceptron(*widths: int) -> nn.Sequential:
    """Linear layers of the given widths with activations between them, on the device."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).to("cuda")


@_case("c324fbad")
def mlp_training_step(generator: torch.Generator) -> Steps:
    """Forward, backward and AdamW."""
    model = perceptron(32, 64, 64, 10)
    optimizer = torch.optim.AdamW(model.parameters())
    inputs, labels = uniform(generator, 16, 32), integers(generator, 10, 16)
    # The first step makes the state of the optimizer, the second is measured.
    for _ in range(2):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        yield


@_case("20e82221")
def step_with_clipped_gradients(generator: torch.Generator) -> Steps:
    """Clip by norm, then by value, between backward and SGD with momentum."""
    model = perceptron(24, 48, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs, targets = uniform(generator, 8, 24), uniform(generator, 8, 4)
    # The first step makes the state of the optimizer, the second is measured.
    for _ in range(2):
        optimizer.zero_grad()
        F.mse_loss(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        yield


@_case("d9d62b1a")
def step_that_checks_the_norm(generator: torch.Generator) -> Steps:
    """Clip by norm and let an error tell of gradients that are not finite; then read the norm."""
    model = perceptron(24, 48, 4)
    inputs = uniform(generator, 8, 24)
    yield
    model.zero_grad()
    model(inputs).square().mean().backward()
    return nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True).item()


@_case("7c269e86")
def mixed_precision_step(generator: torch.Generator) -> Steps:
    """Autocast to half precision with a gradient scaler that unscales before clipping."""
    model = perceptron(32, 64, 8)
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    inputs, targets = uniform(generator, 16, 32), uniform(generator, 16, 8)
    # The first step makes the state of the optimizer, the second is measured.
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.mse_loss(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        del loss
        yield


@_case("e9c3b365")
def bfloat16_forward(generator: torch.Generator) -> Steps:
    """Autocast to bfloat16 without gradients."""
    model = perceptron(32, 64, 64, 8).eval()
    inputs = uniform(generator, 16, 32)
    yield
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        model(inputs).softmax(-1)


@_case("d40d778c")
def checkpointed_step(generator: torch.Generator) -> Steps:
    """Recompute the activations of two blocks in backward."""
    blocks = [perceptron(32, 128, 32) for _ in range(2)]
    inputs = uniform(generator, 64, 32).requires_grad_()
    yield
    hidden = inputs
    for block in blocks:
        hidden = checkpoint(block, hidden, use_reentrant=False)
    hidden.square().sum().backward()


@_case("10ef05ec")
def accumulated_gradients(generator: torch.Generator) -> Steps:
    """Three backward passes for one step of fused Adam."""
    model = perceptron(16, 32, 4)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    batches = [uniform(generator, 8, 16) for _ in range(3)]
    # The first step makes the state of the optimizer, the second is measured.
    for _ in range(2):
        optimizer.zero_grad(set_to_none=False)
        for batch in batches:
            (model(batch).square().mean() / len(batches)).backward()
        optimizer.step()
        yield


@_case("889cc01d")
def moving_average_of_weights(generator: torch.Generator) -> Steps:
    """Update a slow copy of a model, parameter by parameter and in one call, buffers copied."""
    model = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Linear(16, 2)).to("cuda")
    slow = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(uniform(generator, *parameter.shape))
    yield
    with torch.no_grad():
        for old, new in zip(slow.parameters(), model.parameters(), strict=True):
            old.mul_(0.99).add_(new, alpha=0.01)
        torch._foreach_lerp_(list(slow.parameters()), list(model.parameters()), 0.01)
        for kept, seen in zip(slow.buffers(), model.buffers(), strict=True):
            kept.copy_(seen)


@_case("e600ad94")
def weights_to_host_and_back(generator: torch.Generator) -> Steps:
    """A checkpoint of model and optimizer in host memory, restored at once."""
    model = perceptron(16, 32, 4)
    optimizer = torch.optim.Adam(model.parameters())
    model(uniform(generator, 4, 16)).sum().backward()
    optimizer.step()
    yield
    saved = {name: value.cpu() for name, value in model.state_dict().items()}
    state = copy.deepcopy(optimizer.state_dict())
    model.load_state_dict(saved)
    optimizer.load_state_dict(state)


@_case("caf87a1f")
def convnet_training_step(generator: torch.Generator) -> Steps:
    """Convolutions, batch normalization and pooling, with SGD."""
    model = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(16, 10),
        ),
    ).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images, labels = uniform(generator, 4, 3, 16, 16), integers(generator, 10, 4)
    yield
    optimizer.zero_grad()
    F.cross_entropy(model(images), labels).backward()
    optimizer.step()


@_case("5efdd7a1")
def transformer_layer(generator: torch.Generator) -> Steps:
    """One encoder layer with dropout in training, forward and backward."""
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True).to("cuda")
    tokens = uniform(generator, 2, 10, 32).requires_grad_()
    yield
    return layer(tokens).sum().backward()


@_case("28c2b0dd")
def attention_with_masks(generator: torch.Generator) -> Steps:
    """Attention with a padding mask, then causal, then written out with a large negative number."""
    query, key, value = (uniform(generator, 2, 4, 12, 8) for _ in range(3))
    padding = flags(generator, 2, 1, 1, 12)
    padding[..., 0] = True
    yield
    masked = F.scaled_dot_product_attention(query, key, value, attn_mask=padding)
    causal = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    scores = (query @ key.transpose(-2, -1)).masked_fill(~padding, -1e9)
    return masked + causal + scores.softmax(-1) @ value


@_case("5bc9fc69")
def language_model_loss(generator: torch.Generator) -> Steps:
    """Embedding, projection and cross-entropy that leaves padding out, forward and backward."""
    embedding, head = nn.Embedding(50, 16, padding_idx=0).to("cuda"), nn.Linear(16, 50).to("cuda")
    tokens = integers(generator, 50, 4, 12)
    yield
    logits = head(F.layer_norm(embedding(tokens[:, :-1]), (16,)))
    F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0).backward()


@_case("98b329ff")
def beam_search_step(generator: torch.Generator) -> Steps:
    """Extend four beams by the best of all continuations."""
    scores, logits = uniform(generator, 3, 4), uniform(generator, 3, 4, 20)
    sequences = integers(generator, 20, 3, 4, 6)
    yield
    total = (scores[..., None] + logits.log_softmax(-1)).flatten(1)
    best, places = total.topk(4)
    beams = places.div(20, rounding_mode="floor")
    kept = sequences.gather(1, beams[..., None].expand(-1, -1, 6))
    return best, torch.cat([kept, (places % 20)[..., None]], dim=-1)


@_case("0a09cf08")
def recurrent_policy(generator: torch.Generator) -> Steps:
    """An LSTM cell over six steps that forgets where an episode ended, and an action read at each."""
    cell, head = nn.LSTMCell(8, 16).to("cuda"), nn.Linear(16, 4).to("cuda")
    observations, ended = uniform(generator, 6, 2, 8), flags(generator, 6, 2)
    yield
    with torch.no_grad():
        hidden = cell_state = torch.zeros(2, 16, device="cuda")
        actions = []
        for observation, over in zip(observations, ended, strict=True):
            alive = (~over)[:, None].float()
            hidden, cell_state = cell(observation, (hidden * alive, cell_state * alive))
            actions.append(head(hidden).argmax(-1).tolist())
        return actions


@_case("1f742784")
def recurrent_training_step(generator: torch.Generator) -> Steps:
    """A two-layer LSTM over a whole sequence, forward and backward."""
    model = nn.LSTM(8, 16, num_layers=2, batch_first=True).to("cuda")
    sequence = uniform(generator, 3, 7, 8)
    yield
    return model(sequence)[0].square().mean().backward()


@_case("0b6007a7")
def advantages_in_a_loop(generator: torch.Generator) -> Steps:
    """Generalized advantages from the last step to the first, normalized."""
    rewards, values = uniform(generator, 10, 4), uniform(generator, 11, 4)
    going_on = (~flags(generator, 10, 4)).float()
    yield
    result, running = torch.zeros_like(rewards), torch.zeros(4, device="cuda")
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + 0.99 * values[t + 1] * going_on[t] - values[t]
        running = delta + 0.99 * 0.95 * going_on[t] * running
        result[t] = running
    return (result - result.mean()) / (result.std() + 1e-8)


@_case("de35ec2a")
def clipped_policy_update(generator: torch.Generator) -> Steps:
    """Two minibatches of a clipped surrogate loss, which stop early where the policy has moved too far."""
    policy = perceptron(6, 32, 3)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-4)
    states, advantages = uniform(generator, 16, 6), uniform(generator, 16) - 0.5
    actions = integers(generator, 3, 16)
    with torch.no_grad():
        before = Categorical(logits=policy(states)).log_prob(actions)
    order = torch.randperm(16, generator=generator)
    yield
    distances = []
    for chosen in order.to("cuda").split(8):
        policies = Categorical(logits=policy(states[chosen]))
        ratio = (policies.log_prob(actions[chosen]) - before[chosen]).exp()
        gain = torch.min(ratio * advantages[chosen], ratio.clamp(0.8, 1.2) * advantages[chosen])
        optimizer.zero_grad()
        (-gain.mean() - 0.01 * policies.entropy().mean()).backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()
        distances.append(((ratio - 1) - ratio.log()).mean().item())
        if distances[-1] > 1.0:
            break
    return distances


@_case("058d7e39")
def sampled_actions(generator: torch.Generator) -> Steps:
    """Continuous actions with their probabilities, entropies and distance from another policy."""
    mean, deviation = uniform(generator, 5, 2), uniform(generator, 5, 2) + 0.1
    yield
    policy, other = Normal(mean, deviation), Normal(mean + 0.1, deviation)
    action = policy.rsample()
    return action, policy.log_prob(action), policy.entropy(), kl_divergence(policy, other)


@_case("eb82cc9f")
def sampled_replay(generator: torch.Generator) -> Steps:
    """Batches from a buffer on the device: by indices from the host, from the device, and by priority."""
    buffer, priorities = uniform(generator, 100, 6), uniform(generator, 100)
    chosen = torch.randint(100, (8,), generator=generator)
    yield
    by_priority = torch.multinomial(priorities, 8, replacement=True)
    anywhere = torch.randint(100, (8,), device="cuda")
    return buffer[chosen], buffer[anywhere], buffer[by_priority]


@_case("01386a1c")
def check_of_every_parameter(generator: torch.Generator) -> Steps:
    """NaN and infinity in each gradient, read one by one."""
    model = perceptron(8, 16, 16, 4)
    model(uniform(generator, 4, 8)).sum().backward()
    yield
    bad = []
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        if gradient is not None and (torch.isnan(gradient).any() or torch.isinf(gradient).any()):
            bad.append(name)
    return bad


@_case("9a488e21")
def check_of_all_parameters(generator: torch.Generator) -> Steps:
    """The same, read once."""
    model = perceptron(8, 16, 16, 4)
    model(uniform(generator, 4, 8)).sum().backward()
    yield
    norms = torch._foreach_norm([p.grad for p in model.parameters() if p.grad is not None])
    return bool(torch.stack(norms).isfinite().all())


@_case("2f0ac97b")
def values_read_one_by_one(generator: torch.Generator) -> Steps:
    """Twelve losses, an ``item`` each."""
    losses = [uniform(generator, 6).mean() for _ in range(12)]
    yield
    return [loss.item() for loss in losses]


@_case("27132dbf")
def values_read_together(generator: torch.Generator) -> Steps:
    """Twelve losses in one copy."""
    losses = [uniform(generator, 6).mean() for _ in range(12)]
    yield
    return torch.stack(losses).tolist()


@_case("364938e1")
def metrics_accumulated(generator: torch.Generator) -> Steps:
    """Accuracy and a confusion matrix over three batches, read at the end."""
    batches = [(uniform(generator, 20, 5), integers(generator, 5, 20)) for _ in range(3)]
    yield
    right = torch.zeros((), device="cuda")
    confusion = torch.zeros(5, 5, dtype=torch.int64, device="cuda")
    for scores, labels in batches:
        predicted = scores.argmax(-1)
        right += (predicted == labels).sum()
        confusion += torch.bincount(labels * 5 + predicted, minlength=25).view(5, 5)
    return (right / 60).item(), confusion.tolist()


@_case("40d81d71")
def padding_left_out(generator: torch.Generator) -> Steps:
    """Rows chosen by a mask, written back by it, and counted by class."""
    values, mask, classes = uniform(generator, 40, 3), flags(generator, 40), integers(generator, 4, 40)
    yield
    kept = values[mask]
    result = torch.zeros_like(values)
    result[mask] = kept * 2
    result[~mask] = -1.0
    counts = torch.nn.functional.one_hot(classes[mask], 4).sum(0)
    return result.sum() + counts.max() + torch.where(mask)[0].sum()


@_case("2736b2cc")
def pinned_loading(generator: torch.Generator) -> Steps:
    """Batches from a loader that pins memory, copied without waiting."""
    dataset = TensorDataset(torch.rand(12, 5, generator=generator), torch.arange(12))
    loader = DataLoader(dataset, batch_size=4, pin_memory=True)
    yield
    total = torch.zeros((), device="cuda")
    for inputs, labels in loader:
        total += inputs.to("cuda", non_blocking=True).sum() + labels.to("cuda", non_blocking=True).sum()
    return total


@_case("0d2bb1ea")
def copies_of_every_kind(generator: torch.Generator) -> Steps:
    """Pageable and pinned memory, both directions, blocking and not, other types and strides."""
    pageable = torch.rand(64, 16, generator=generator)
    pinned, remote = pageable.pin_memory(), uniform(generator, 64, 16)
    yield
    for host in (pageable, pinned):
        for lazily in (False, True):
            host.to("cuda", non_blocking=lazily)
            host.copy_(remote, non_blocking=lazily)
    pageable.to("cuda", torch.float16)
    remote.t().cpu()
    remote[:, ::2].to("cpu")
    torch.tensor([1.0, 2.0], device="cuda")
    torch.cuda.synchronize()


@_case("75dabd35")
def prefetch_on_a_side_stream(generator: torch.Generator) -> Steps:
    """Copy the next batch on a stream of its own while the present one is used, ordered by events."""
    batches = [torch.rand(32, 8, generator=generator).pin_memory() for _ in range(3)]
    weight = uniform(generator, 8, 8)
    side = torch.cuda.Stream()
    yield
    total = torch.zeros(32, 8, device="cuda")
    for batch in batches:
        with torch.cuda.stream(side):
            moved = batch.to("cuda", non_blocking=True)
            ready = side.record_event()
        torch.cuda.current_stream().wait_event(ready)
        moved.record_stream(torch.cuda.current_stream())
        total += moved @ weight
    side.wait_stream(torch.cuda.current_stream())
    return total


@_case("2dafc02f")
def timed_by_events(generator: torch.Generator) -> Steps:
    """Time a product by two events, waiting for the second."""
    matrix = uniform(generator, 32, 32)
    yield
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    matrix @ matrix
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)
