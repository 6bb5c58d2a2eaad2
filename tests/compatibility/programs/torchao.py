import torch
from torch import nn
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_


def eight_bits():
    """Weights of 8 bits, and activations too."""
    for how in (Int8WeightOnlyConfig(), Int8DynamicActivationInt8WeightConfig()):
        model = nn.Sequential(nn.Linear(64, 64)).to(torch.bfloat16).cuda()
        quantize_(model, how)
        model(torch.randn(32, 64, dtype=torch.bfloat16, device="cuda"))
