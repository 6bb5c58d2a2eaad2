import normflows
import torch


def coupling_flow():
    """Coupling blocks and layers that the first batch initialises: two training steps, and samples."""
    flows = []
    for _ in range(2):
        weights = normflows.nets.MLP([1, 8, 2], init_zeros=True)
        flows += [normflows.flows.AffineCouplingBlock(weights), normflows.flows.ActNorm(2)]
    model = normflows.NormalizingFlow(normflows.distributions.base.DiagGaussian(2), flows).to("cuda")
    optimizer = torch.optim.Adamax(model.parameters(), 5e-4)
    for _ in range(2):
        loss = model.forward_kld(torch.randn(8, 2).to("cuda"))
        if ~(torch.isnan(loss) | torch.isinf(loss)):
            loss.backward()
            optimizer.step()
    model.sample(4)
