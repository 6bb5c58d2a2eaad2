import torch
from einops import pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import Rearrange


def operations():
    """Rearranges, reduces, repeats and packs."""
    x = rearrange(torch.ones(2, 3, 4, device="cuda"), "a b c -> (a b) c")
    repeat(reduce(x, "a c -> c", "mean"), "c -> c d", d=2).sum().item()
    packed, shapes = pack([x, x[:, 0]], "a *")
    unpack(packed, shapes, "a *")
    Rearrange("a (b c) -> a b c", b=2)(x)
