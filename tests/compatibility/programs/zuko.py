import torch
import zuko


def spline_flow():
    """A neural spline flow with a context: a training step, and samples."""
    flow = zuko.flows.NSF(3, context=2, transforms=2, hidden_features=(16, 16)).cuda()
    context = torch.randn(8, 2, device="cuda")
    loss = -flow(context).log_prob(torch.randn(8, 3, device="cuda")).mean()
    loss.backward()
    flow(context[0]).sample((4,))
    loss.item()
