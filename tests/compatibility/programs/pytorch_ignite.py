import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EMAHandler, TerminateOnNan
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, RunningAverage
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def training():
    """Engines: mixed precision, a moving average of weights, metrics after each epoch."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to("cuda")
    data = TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,)))
    optimizer, loss = torch.optim.Adam(model.parameters(), 0.01), nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(
        model, optimizer, loss, device="cuda", non_blocking=True, amp_mode="amp", scaler=True
    )
    metrics = {"accuracy": Accuracy(), "loss": Loss(loss), "confusion": ConfusionMatrix(3)}
    evaluator = create_supervised_evaluator(model, metrics=metrics, device="cuda")
    RunningAverage(output_transform=lambda x: x).attach(trainer, "loss")
    EMAHandler(model, momentum=0.1).attach(trainer, name="momentum", event=Events.ITERATION_COMPLETED)
    trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda _: evaluator.run(DataLoader(data, 8)))
    trainer.run(DataLoader(data, 4), max_epochs=2)
