import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE


def replay_buffer():
    """A replay buffer on the device."""
    buffer = ReplayBuffer(storage=LazyTensorStorage(16, device="cuda"), batch_size=4)
    buffer.extend(TensorDict({"o": torch.ones(8, 2)}, batch_size=[8]))
    assert buffer.sample()["o"].device.type == "cuda"


def ppo():
    """The loss of PPO with generalised advantages."""
    network = TensorDictModule(torch.nn.Linear(2, 3), ["observation"], ["logits"])
    actor = ProbabilisticActor(
        network, in_keys=["logits"], distribution_class=torch.distributions.Categorical, return_log_prob=True
    ).to("cuda")
    critic = ValueOperator(torch.nn.Linear(2, 1), ["observation"]).to("cuda")
    data = TensorDict({"observation": torch.rand(2, 5, 2)}, batch_size=[2, 5]).to("cuda")
    with torch.no_grad():
        data = actor(data)
    flags = torch.zeros(2, 5, 1, dtype=torch.bool, device="cuda")
    data["next"] = TensorDict(
        {
            "observation": torch.rand(2, 5, 2, device="cuda"),
            "reward": torch.rand(2, 5, 1, device="cuda"),
            "done": flags,
            "terminated": flags,
        },
        batch_size=[2, 5],
    )
    GAE(gamma=0.9, lmbda=0.9, value_network=critic)(data)
    losses = ClipPPOLoss(actor, critic)(data)
    (losses["loss_objective"] + losses["loss_critic"]).backward()
