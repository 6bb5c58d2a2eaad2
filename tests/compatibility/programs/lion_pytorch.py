import torch
from lion_pytorch import Lion


def lion():
    """Two steps of Lion."""
    model = torch.nn.Linear(4, 2).to("cuda")
    optimizer = Lion(model.parameters())
    for _ in range(2):
        model(torch.ones(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
