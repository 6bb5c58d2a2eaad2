import pyro
import torch
from pyro import distributions
from pyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from pyro.infer.autoguide import AutoNormal


def _model(data):
    zero = torch.zeros((), device="cuda")
    mean = pyro.sample("mean", distributions.Normal(zero, zero + 1))
    with pyro.plate("data", len(data)):
        pyro.sample("observed", distributions.Normal(mean, 1.0), obs=data)


def variational():
    """SVI: two steps with an automatic guide."""
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    step = SVI(_model, AutoNormal(_model), pyro.optim.Adam({"lr": 0.1}), Trace_ELBO()).step
    for _ in range(2):
        step(torch.ones(4, device="cuda"))


def monte_carlo():
    """MCMC: samples by NUTS."""
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    MCMC(NUTS(_model), num_samples=2, warmup_steps=1, disable_progbar=True).run(torch.ones(4, device="cuda"))
