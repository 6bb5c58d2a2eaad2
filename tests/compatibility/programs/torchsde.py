import torch
import torchsde


class _Equation(torch.nn.Module):
    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(self):
        super().__init__()
        self.drift, self.diffusion = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def f(self, _, y):
        return self.drift(y)

    def g(self, _, y):
        return self.diffusion(y).sigmoid()


def integrated():
    """A stochastic equation: its gradients through Milstein's steps, and by the adjoint method."""
    equation = _Equation().cuda()
    times, start = torch.linspace(0, 1, 3, device="cuda"), torch.full((4, 3), 0.1, device="cuda")
    torchsde.sdeint(equation, start, times, dt=0.25, method="milstein").sum().backward()
    torchsde.sdeint_adjoint(equation, start, times, dt=0.25, method="euler").mean().backward()
