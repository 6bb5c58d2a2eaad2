"""Models, losses and reinforcement learning: policies, advantages, updates and replay."""

# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import torch
from torch import nn
from torch.distributions import Categorical, Normal, kl_divergence
from torch.nn import functional as F  # noqa: N812 - its usual name

from simcuda.recording.workloads.tensors import Steps, Workload, flags, integers, perceptron, uniform


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


def transformer_layer(generator: torch.Generator) -> Steps:
    """One encoder layer with dropout in training, forward and backward."""
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True).to("cuda")
    tokens = uniform(generator, 2, 10, 32).requires_grad_()
    yield
    return layer(tokens).sum().backward()


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


def language_model_loss(generator: torch.Generator) -> Steps:
    """Embedding, projection and cross-entropy that leaves padding out, forward and backward."""
    embedding, head = nn.Embedding(50, 16, padding_idx=0).to("cuda"), nn.Linear(16, 50).to("cuda")
    tokens = integers(generator, 50, 4, 12)
    yield
    logits = head(F.layer_norm(embedding(tokens[:, :-1]), (16,)))
    F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0).backward()


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


def recurrent_training_step(generator: torch.Generator) -> Steps:
    """A two-layer LSTM over a whole sequence, forward and backward."""
    model = nn.LSTM(8, 16, num_layers=2, batch_first=True).to("cuda")
    sequence = uniform(generator, 3, 7, 8)
    yield
    return model(sequence)[0].square().mean().backward()


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


def sampled_actions(generator: torch.Generator) -> Steps:
    """Continuous actions with their probabilities, entropies and distance from another policy."""
    mean, deviation = uniform(generator, 5, 2), uniform(generator, 5, 2) + 0.1
    yield
    policy, other = Normal(mean, deviation), Normal(mean + 0.1, deviation)
    action = policy.rsample()
    return action, policy.log_prob(action), policy.entropy(), kl_divergence(policy, other)


def sampled_replay(generator: torch.Generator) -> Steps:
    """Batches from a buffer on the device: by indices from the host, from the device, and by priority."""
    buffer, priorities = uniform(generator, 100, 6), uniform(generator, 100)
    chosen = torch.randint(100, (8,), generator=generator)
    yield
    by_priority = torch.multinomial(priorities, 8, replacement=True)
    anywhere = torch.randint(100, (8,), device="cuda")
    return buffer[chosen], buffer[anywhere], buffer[by_priority]


WORKLOADS: dict[Workload, str] = {
    convnet_training_step: "caf87a1f",
    transformer_layer: "5efdd7a1",
    attention_with_masks: "28c2b0dd",
    language_model_loss: "5bc9fc69",
    beam_search_step: "98b329ff",
    recurrent_policy: "0a09cf08",
    recurrent_training_step: "1f742784",
    advantages_in_a_loop: "0b6007a7",
    clipped_policy_update: "de35ec2a",
    sampled_actions: "058d7e39",
    sampled_replay: "eb82cc9f",
}
"""Each with its digest."""
