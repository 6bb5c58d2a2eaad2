import tempfile

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential


def containers():
    """Moves, stacks and indexes."""
    data = TensorDict({"a": torch.ones(3, 2), "b": {"c": torch.zeros(3)}}, batch_size=[3]).to("cuda")
    data[1]["b", "c"].item()
    torch.stack([data, data]).reshape(-1).cpu()


def modules():
    """Modules that read and write keys."""
    layers = [TensorDictModule(torch.nn.Linear(2, 2), [a], [b]) for a, b in ("xh", "hy")]
    model = TensorDictSequential(*layers).to("cuda")
    model(TensorDict({"x": torch.ones(3, 2, device="cuda")}, batch_size=[3]))["y"].sum().backward()


def memory_mapped():
    """A dictionary that is memory-mapped on the host."""
    with tempfile.TemporaryDirectory() as folder:
        data = TensorDict({"a": torch.ones(3, 2, device="cuda")}, batch_size=[3])
        data.cpu().memmap_(folder)
        TensorDict.load_memmap(folder).to("cuda")
