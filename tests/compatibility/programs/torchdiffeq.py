import torch
from torchdiffeq import odeint, odeint_adjoint


class _Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        torch.nn.init.constant_(self.layer.weight, 0.1)

    def forward(self, _, y):
        return self.layer(y)


def adjoint():
    """Gradients by the adjoint method, with adaptive steps."""
    times = torch.linspace(0, 1, 3, device="cuda")
    odeint_adjoint(_Field().to("cuda"), torch.ones(2, device="cuda"), times).sum().backward()


def fixed_steps():
    """Runge-Kutta with fixed steps."""
    times = torch.linspace(0, 1, 3, device="cuda")
    odeint(_Field().to("cuda"), torch.ones(2, device="cuda"), times, method="rk4").sum().item()
