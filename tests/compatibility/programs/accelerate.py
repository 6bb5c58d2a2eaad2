import tempfile

import torch
from accelerate import Accelerator, dispatch_model, infer_auto_device_map
from accelerate.state import AcceleratorState
from torch.utils.data import DataLoader


def _prepared(**options):
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(**options)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = DataLoader(torch.ones(8, 4), batch_size=2)
    return accelerator, *accelerator.prepare(model, optimizer, loader)


def training():
    """Accelerator: bfloat16, gather."""
    accelerator, model, optimizer, loader = _prepared(mixed_precision="bf16")
    for batch in loader:
        loss = model(batch).sum()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.gather(loss).item()


def accumulated():
    """Accelerator: float16, gradient accumulation and clipping."""
    accelerator, model, optimizer, loader = _prepared(mixed_precision="fp16", gradient_accumulation_steps=2)
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch).sum())
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


def saved_state():
    """Accelerator: save_state and load_state."""
    accelerator, *_ = _prepared()
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        accelerator.load_state(folder)


def offloaded():
    """A device map with a part of the model on the host."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    infer_auto_device_map(model)
    dispatch_model(model, {"0": "cuda:0", "1": "cpu"}, main_device="cuda:0")(torch.ones(2, 4))


def offloaded_by_number():
    """A device map that names the device by its number."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    dispatch_model(model, {"0": 0, "1": "cpu"}, main_device=0)(torch.ones(2, 4))
