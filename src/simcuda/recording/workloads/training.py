"""Training steps: what surrounds the model."""

# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch.utils.checkpoint import checkpoint

from simcuda.recording.case import Work
from simcuda.recording.workloads.tensors import integers, perceptron, uniform


def mlp_training_step(generator: torch.Generator) -> Work:
    """Forward, backward and AdamW."""
    model = perceptron(32, 64, 64, 10)
    optimizer = torch.optim.AdamW(model.parameters())
    inputs, labels = uniform(generator, 16, 32), integers(generator, 10, 16)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    step()
    return step


def step_with_clipped_gradients(generator: torch.Generator) -> Work:
    """Clip by norm, then by value, between backward and SGD with momentum."""
    model = perceptron(24, 48, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs, targets = uniform(generator, 8, 24), uniform(generator, 8, 4)

    def step() -> None:
        optimizer.zero_grad()
        F.mse_loss(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()

    step()
    return step


def step_that_checks_the_norm(generator: torch.Generator) -> Work:
    """Clip by norm and let an error tell of gradients that are not finite; then read the norm."""
    model = perceptron(24, 48, 4)
    inputs = uniform(generator, 8, 24)

    def step() -> float:
        model.zero_grad()
        model(inputs).square().mean().backward()
        return nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True).item()

    return step


def mixed_precision_step(generator: torch.Generator) -> Work:
    """Autocast to half precision with a gradient scaler that unscales before clipping."""
    model = perceptron(32, 64, 8)
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    inputs, targets = uniform(generator, 16, 32), uniform(generator, 16, 8)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.mse_loss(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    step()
    return step


def bfloat16_forward(generator: torch.Generator) -> Work:
    """Autocast to bfloat16 without gradients."""
    model = perceptron(32, 64, 64, 8).eval()
    inputs = uniform(generator, 16, 32)

    def forward() -> None:
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
            model(inputs).softmax(-1)

    return forward


def checkpointed_step(generator: torch.Generator) -> Work:
    """Recompute the activations of two blocks in backward."""
    blocks = [perceptron(32, 128, 32) for _ in range(2)]
    inputs = uniform(generator, 64, 32).requires_grad_()

    def step() -> None:
        hidden = inputs
        for block in blocks:
            hidden = checkpoint(block, hidden, use_reentrant=False)
        hidden.square().sum().backward()

    return step


def accumulated_gradients(generator: torch.Generator) -> Work:
    """Three backward passes for one step of fused Adam."""
    model = perceptron(16, 32, 4)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    batches = [uniform(generator, 8, 16) for _ in range(3)]

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        for batch in batches:
            (model(batch).square().mean() / len(batches)).backward()
        optimizer.step()

    step()
    return step


def moving_average_of_weights(generator: torch.Generator) -> Work:
    """Update a slow copy of a model, parameter by parameter and in one call, buffers copied."""
    model = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Linear(16, 2)).to("cuda")
    slow = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(uniform(generator, *parameter.shape))

    @torch.no_grad()
    def update() -> None:
        for old, new in zip(slow.parameters(), model.parameters(), strict=True):
            old.mul_(0.99).add_(new, alpha=0.01)
        torch._foreach_lerp_(list(slow.parameters()), list(model.parameters()), 0.01)
        for kept, seen in zip(slow.buffers(), model.buffers(), strict=True):
            kept.copy_(seen)

    return update


def weights_to_host_and_back(generator: torch.Generator) -> Work:
    """A checkpoint of model and optimizer in host memory, restored at once."""
    model = perceptron(16, 32, 4)
    optimizer = torch.optim.Adam(model.parameters())
    model(uniform(generator, 4, 16)).sum().backward()
    optimizer.step()

    def save_and_restore() -> None:
        saved = {name: value.cpu() for name, value in model.state_dict().items()}
        state = copy.deepcopy(optimizer.state_dict())
        model.load_state_dict(saved)
        optimizer.load_state_dict(state)

    return save_and_restore


WORKLOADS = (
    mlp_training_step,
    step_with_clipped_gradients,
    step_that_checks_the_norm,
    mixed_precision_step,
    bfloat16_forward,
    checkpointed_step,
    accumulated_gradients,
    moving_average_of_weights,
    weights_to_host_and_back,
)
