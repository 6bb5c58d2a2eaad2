import schedulefree
import torch


def adamw():
    """Training and evaluation by AdamWScheduleFree."""
    model = torch.nn.Linear(4, 2).to("cuda")
    optimizer = schedulefree.AdamWScheduleFree(model.parameters())
    optimizer.train()
    for _ in range(2):
        model(torch.ones(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    optimizer.eval()
