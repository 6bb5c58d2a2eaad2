import torch
from vector_quantize_pytorch import FSQ, VectorQuantize


def codebooks():
    """A codebook that k-means begins and dead codes leave, and scalar quantisation: two steps."""
    how = {"kmeans_init": True, "kmeans_iters": 2, "threshold_ema_dead_code": 2}
    codes = VectorQuantize(dim=8, codebook_size=16, **how).cuda()
    scalars = FSQ([4, 4, 4]).cuda()
    layer = torch.nn.Linear(8, 8).cuda()
    for _ in range(2):
        x = layer(torch.randn(1, 32, 8, device="cuda"))
        quantised, _, loss = codes(x)
        (quantised.sum() + loss.sum() + scalars(x[..., :3])[0].sum()).backward()
