import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper


def autoregressive():
    """A decoder with rotary positions and gated layers: a training step, and what it generates."""
    layers = Decoder(
        dim=16, depth=2, heads=2, attn_dim_head=8, rotary_pos_emb=True, attn_flash=True, ff_glu=True
    )
    model = AutoregressiveWrapper(TransformerWrapper(num_tokens=32, max_seq_len=16, attn_layers=layers))
    model = model.cuda()
    model(torch.randint(0, 32, (2, 17), device="cuda")).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    prompt = torch.zeros(1, 1, dtype=torch.int64, device="cuda")
    model.generate(prompt, 3)
    model.generate(prompt, 3, eos_token=3, temperature=0.0)
