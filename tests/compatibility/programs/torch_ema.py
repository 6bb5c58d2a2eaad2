import torch
from torch_ema import ExponentialMovingAverage


def averages():
    """A moving average of weights, used in place of them for a while."""
    layer = torch.nn.Linear(4, 1).cuda()
    average = ExponentialMovingAverage(layer.parameters(), 0.99)
    for _ in range(2):
        average.update()
    with average.average_parameters():
        layer(torch.ones(1, 4).cuda()).item()
