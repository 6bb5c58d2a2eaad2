import torch
from captum.attr import IntegratedGradients, LayerGradCam, Occlusion


def integrated_gradients():
    """IntegratedGradients with its error of convergence."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2)).to("cuda")
    inputs = torch.ones(2, 4, device="cuda")
    IntegratedGradients(model).attribute(inputs, target=0, n_steps=4, return_convergence_delta=True)


def layers():
    """GradCam of a convolution, and occlusion."""
    convolution = torch.nn.Conv2d(1, 2, 3)
    model = torch.nn.Sequential(convolution, torch.nn.Flatten(), torch.nn.Linear(72, 2)).to("cuda")
    image = torch.rand(1, 1, 8, 8, device="cuda")
    LayerGradCam(model, convolution).attribute(image, target=1)
    Occlusion(model).attribute(image, (1, 4, 4), strides=4, target=1)
