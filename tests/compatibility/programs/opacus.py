import warnings

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")


def private_training():
    """An epoch of training with differential privacy, and its epsilon."""
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2).to("cuda")
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), 0.1),
        data_loader=DataLoader(TensorDataset(torch.ones(8, 4), torch.zeros(8).long()), batch_size=4),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    for x, y in loader:
        if len(x):
            torch.nn.functional.cross_entropy(model(x.to("cuda")), y.to("cuda")).backward()
            optimizer.step()
            optimizer.zero_grad()
    engine.get_epsilon(delta=1e-5)
