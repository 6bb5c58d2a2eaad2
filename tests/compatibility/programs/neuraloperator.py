import torch
from neuralop import LpLoss
from neuralop.models import FNO


def fourier():
    """A Fourier neural operator: two training steps."""
    model = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(2):
        x, y = (torch.randn(2, 1, 16, 16, device="cuda") for _ in range(2))
        loss = LpLoss(d=2, p=2)(model(x), y)
        loss.backward()
        optimizer.step()
