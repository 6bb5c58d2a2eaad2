"""Models and losses of several kinds, forward and backward."""

# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from simcuda.recording.case import Work
from simcuda.recording.workloads.tensors import flags, integers, uniform


def convnet_training_step(generator: torch.Generator) -> Work:
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

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def transformer_layer(generator: torch.Generator) -> Work:
    """One encoder layer with dropout in training, forward and backward."""
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True).to("cuda")
    tokens = uniform(generator, 2, 10, 32).requires_grad_()
    return lambda: layer(tokens).sum().backward()


def attention_with_masks(generator: torch.Generator) -> Work:
    """Attention with a padding mask, then causal, then written out with a large negative number."""
    query, key, value = (uniform(generator, 2, 4, 12, 8) for _ in range(3))
    padding = flags(generator, 2, 1, 1, 12)
    padding[..., 0] = True

    def attend() -> torch.Tensor:
        masked = F.scaled_dot_product_attention(query, key, value, attn_mask=padding)
        causal = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        scores = (query @ key.transpose(-2, -1)).masked_fill(~padding, -1e9)
        return masked + causal + scores.softmax(-1) @ value

    return attend


def language_model_loss(generator: torch.Generator) -> Work:
    """Embedding, projection and cross-entropy that leaves padding out, forward and backward."""
    embedding, head = nn.Embedding(50, 16, padding_idx=0).to("cuda"), nn.Linear(16, 50).to("cuda")
    tokens = integers(generator, 50, 4, 12)

    def step() -> None:
        logits = head(F.layer_norm(embedding(tokens[:, :-1]), (16,)))
        F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0).backward()

    return step


def beam_search_step(generator: torch.Generator) -> Work:
    """Extend four beams by the best of all continuations."""
    scores, logits = uniform(generator, 3, 4), uniform(generator, 3, 4, 20)
    sequences = integers(generator, 20, 3, 4, 6)

    def step() -> tuple[torch.Tensor, torch.Tensor]:
        total = (scores[..., None] + logits.log_softmax(-1)).flatten(1)
        best, places = total.topk(4)
        beams = places.div(20, rounding_mode="floor")
        kept = sequences.gather(1, beams[..., None].expand(-1, -1, 6))
        return best, torch.cat([kept, (places % 20)[..., None]], dim=-1)

    return step


WORKLOADS = (
    convnet_training_step,
    transformer_layer,
    attention_with_masks,
    language_model_loss,
    beam_search_step,
)
