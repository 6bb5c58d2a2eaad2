import gpytorch
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy


class _Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean, self.kernel = ConstantMean(), ScaleKernel(RBFKernel())

    def forward(self, x):
        return MultivariateNormal(self.mean(x), self.kernel(x))


class _Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = CholeskyVariationalDistribution(len(points))
        super().__init__(VariationalStrategy(self, points, distribution))
        self.mean, self.kernel = ConstantMean(), ScaleKernel(RBFKernel())

    def forward(self, x):
        return MultivariateNormal(self.mean(x), self.kernel(x))


def exact():
    """An exact Gaussian process: a training step and a prediction."""
    x = torch.linspace(0, 1, 10, device="cuda")
    likelihood = GaussianLikelihood().to("cuda")
    model = _Exact(x, torch.sin(x), likelihood).to("cuda")
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    loss = -gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(x), torch.sin(x))
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        likelihood.eval()(model(x[:3])).variance.sum().item()


def variational():
    """A variational Gaussian process: a training step."""
    x = torch.linspace(0, 1, 10, device="cuda")
    model, likelihood = _Variational(x[:4].clone()).to("cuda"), GaussianLikelihood().to("cuda")
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=10)
    (-objective(model(x), torch.sin(x))).backward()
