import logging
import tempfile
import warnings

import lightning
import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning").setLevel(logging.ERROR)
warnings.simplefilter("ignore")


class _Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _):
        loss = self.layer(batch[0]).mean()
        self.log("loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        self.log("validation", self.layer(batch[0]).mean())

    def predict_step(self, batch, _):
        return self.layer(batch[0])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def _trainer(folder, **options):
    return lightning.Trainer(
        max_epochs=1, accelerator="gpu", devices=1, logger=False, default_root_dir=folder, **options
    )


def _loader():
    return DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=2)


def fit():
    """Trainer: float16, validation, progress bar, checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        _trainer(folder, precision="16-mixed").fit(_Model(), _loader(), _loader())


def accumulated():
    """Trainer: bfloat16, gradient accumulation and clipping."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"precision": "bf16-mixed", "accumulate_grad_batches": 2, "gradient_clip_val": 1.0}
        _trainer(folder, enable_checkpointing=False, enable_progress_bar=False, **options).fit(
            _Model(), _loader()
        )


def predict():
    """Trainer: predict."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"enable_checkpointing": False, "enable_progress_bar": False}
        assert len(_trainer(folder, **options).predict(_Model(), _loader())) == 4


def fabric():
    """Fabric: a training step in bfloat16."""
    runner = Fabric(accelerator="cuda", devices=1, precision="bf16-mixed")
    runner.launch()
    model = torch.nn.Linear(4, 4)
    model, optimizer = runner.setup(model, torch.optim.SGD(model.parameters(), 0.1))
    loss = model(torch.ones(2, 4, device=runner.device)).sum()
    runner.backward(loss)
    runner.clip_gradients(model, optimizer, max_norm=1.0)
    optimizer.step()
    loss.item()
