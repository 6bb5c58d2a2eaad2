import gymnasium
import tianshou
import torch
from tianshou.utils.net.common import Net


def deep_q():
    """DQN on CartPole: steps of two environments, and an update."""
    environments = tianshou.env.DummyVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2)
    network = Net(4, 2, hidden_sizes=[16], device="cuda").to("cuda")
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    policy = tianshou.policy.DQNPolicy(network, optimizer, 0.9, 3, target_update_freq=10)
    buffer = tianshou.data.VectorReplayBuffer(200, 2)
    tianshou.data.Collector(policy, environments, buffer).collect(n_step=20)
    policy.update(8, buffer)
