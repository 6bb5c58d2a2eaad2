import torch
from e3nn import nn, o3


def tensor_product():
    """A fully connected tensor product, forward and backward."""
    product = o3.FullyConnectedTensorProduct("2x0e+1x1o", "1x1o", "2x0e").to("cuda")
    product(torch.rand(3, 5, device="cuda"), torch.rand(3, 3, device="cuda")).sum().backward()


def harmonics():
    """Spherical harmonics and a gate."""
    vectors = torch.rand(4, 3, device="cuda")
    values = o3.spherical_harmonics("1x0e+1x1o", vectors, normalize=True)
    nn.Gate("1x0e", [torch.tanh], "", [], "").to("cuda")(values[:, :1])
