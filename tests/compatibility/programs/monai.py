import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import Compose, EnsureType, RandFlip, ScaleIntensity


def training():
    """UNet with a Dice loss: a training step."""
    model = UNet(2, 1, 2, (4, 8), (2,)).to("cuda")
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.rand(1, 1, 16, 16, device="cuda"), torch.ones(1, 1, 16, 16, device="cuda")
    DiceLoss(softmax=True, to_onehot_y=True)(model(x), y).backward()
    optimizer.step()


def inference():
    """Sliding windows and a Dice metric."""
    model, metric = UNet(2, 1, 2, (4, 8), (2,)).to("cuda").eval(), DiceMetric()
    with torch.no_grad():
        logits = sliding_window_inference(torch.rand(1, 1, 16, 16, device="cuda"), (8, 8), 2, model)
    metric((logits > 0).float(), torch.ones_like(logits))
    metric.aggregate().item()


def transforms():
    """Transforms of an image on the device."""
    chain = Compose([EnsureType(device="cuda"), ScaleIntensity(), RandFlip(prob=1.0)])
    assert chain(torch.rand(1, 8, 8)).device.type == "cuda"
