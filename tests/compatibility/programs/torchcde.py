import torch
import torchcde


class _Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 12)

    def forward(self, _, z):
        return self.layer(z).tanh().view(-1, 4, 3)


def controlled():
    """A controlled equation along a spline of data with a gap: its gradient."""
    data = torch.randn(2, 10, 3).cuda()
    data[0, 3, 1] = float("nan")
    spline = torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(data))
    start, how = torch.zeros(2, 4).cuda(), {"method": "rk4", "options": {"step_size": 1.0}}
    end = torchcde.cdeint(X=spline, z0=start, func=_Field().cuda(), t=spline.interval, adjoint=False, **how)
    end.sum().backward()
