"""Training steps: what surrounds the model."""

# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch.utils.checkpoint import checkpoint

from simcuda.recording.workloads.tensors import Steps, Workload, integers, perceptron, uniform


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


def step_that_checks_the_norm(generator: torch.Generator) -> Steps:
    """Clip by norm and let an error tell of gradients that are not finite; then read the norm."""
    model = perceptron(24, 48, 4)
    inputs = uniform(generator, 8, 24)
    yield
    model.zero_grad()
    model(inputs).square().mean().backward()
    return nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True).item()


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


def bfloat16_forward(generator: torch.Generator) -> Steps:
    """Autocast to bfloat16 without gradients."""
    model = perceptron(32, 64, 64, 8).eval()
    inputs = uniform(generator, 16, 32)
    yield
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        model(inputs).softmax(-1)


def checkpointed_step(generator: torch.Generator) -> Steps:
    """Recompute the activations of two blocks in backward."""
    blocks = [perceptron(32, 128, 32) for _ in range(2)]
    inputs = uniform(generator, 64, 32).requires_grad_()
    yield
    hidden = inputs
    for block in blocks:
        hidden = checkpoint(block, hidden, use_reentrant=False)
    hidden.square().sum().backward()


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


WORKLOADS: dict[Workload, str] = {
    mlp_training_step: "c324fbad",
    step_with_clipped_gradients: "20e82221",
    step_that_checks_the_norm: "d9d62b1a",
    mixed_precision_step: "7c269e86",
    bfloat16_forward: "e9c3b365",
    checkpointed_step: "d40d778c",
    accumulated_gradients: "10ef05ec",
    moving_average_of_weights: "889cc01d",
    weights_to_host_and_back: "e600ad94",
}
"""Each with its digest."""
