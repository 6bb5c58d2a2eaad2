import pytorch_optimizer
import torch


def optimizers():
    """Two steps of each of eight, of which Prodigy, Shampoo and SOAP keep more than moments."""
    for name in ("AdaBelief", "Adan", "LaProp", "LARS", "Lamb", "Prodigy", "Shampoo", "SOAP"):
        layer = torch.nn.Linear(4, 4).to("cuda")
        optimizer = pytorch_optimizer.load_optimizer(name)(layer.parameters(), lr=1e-3)
        for _ in range(2):
            layer(torch.ones(2, 4, device="cuda")).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
