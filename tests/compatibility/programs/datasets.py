from datasets import Dataset
from torch.utils.data import DataLoader


def formatted():
    """Rows as tensors of the device, and batches of the host from pinned memory."""
    data = Dataset.from_dict({"x": [[float(n)] * 4 for n in range(12)], "y": list(range(12))})
    for batch in DataLoader(data.with_format("torch", device="cuda"), batch_size=4):
        batch["x"].sum()
    for batch in DataLoader(data.with_format("torch"), batch_size=4, pin_memory=True):
        batch["x"].cuda(non_blocking=True).sum()
