import tempfile
from pathlib import Path

from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.evaluation import evaluate_policy


def ppo():
    """PPO on CartPole, and evaluation."""
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=16, n_epochs=1, device="cuda", seed=0)
    model.learn(64)
    evaluate_policy(model, model.get_env(), n_eval_episodes=1, warn=False)


def dqn():
    """DQN on CartPole, with its replay buffer."""
    DQN("MlpPolicy", "CartPole-v1", learning_starts=10, device="cuda", seed=0).learn(32)


def sac():
    """SAC on Pendulum, saved and loaded."""
    model = SAC("MlpPolicy", "Pendulum-v1", learning_starts=4, batch_size=4, device="cuda", seed=0)
    model.learn(8)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        SAC.load(Path(folder, "model"), device="cuda")
