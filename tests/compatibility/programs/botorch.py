import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood


def _model():
    x = torch.linspace(0, 1, 10, device="cuda", dtype=torch.double).reshape(5, 2)
    return SingleTaskGP(x, x.sum(1, keepdim=True)).to("cuda")


def acquisition():
    """Optimises an acquisition function."""
    improvement = LogExpectedImprovement(_model(), best_f=1.0)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], device="cuda", dtype=torch.double)
    optimize_acqf(improvement, bounds, q=1, num_restarts=2, raw_samples=4, options={"maxiter": 2})


def fitting():
    """Fits the hyperparameters of a model by L-BFGS of SciPy."""
    model = _model()
    likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(likelihood, optimizer_kwargs={"options": {"maxiter": 2}})
