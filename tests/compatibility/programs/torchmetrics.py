import torch
import torchmetrics
from torchmetrics import classification, regression


def classifiers():
    """Accuracy and a confusion matrix."""
    scores, labels = torch.rand(8, 4, device="cuda"), torch.randint(4, (8,), device="cuda")
    metrics = torchmetrics.MetricCollection(
        {
            "accuracy": classification.MulticlassAccuracy(4),
            "confusion": classification.MulticlassConfusionMatrix(4),
        }
    ).to("cuda")
    metrics.update(scores, labels)
    metrics.compute()["accuracy"].item()


def curves():
    """The area under a curve of all scores."""
    metric = classification.BinaryAUROC().to("cuda")
    for _ in range(2):
        metric.update(torch.rand(8, device="cuda"), torch.randint(2, (8,), device="cuda"))
    metric.compute().item()


def regressions():
    """Means of errors, one of them a running mean."""
    error, mean = regression.MeanSquaredError().to("cuda"), torchmetrics.MeanMetric().to("cuda")
    for _ in range(3):
        values = torch.rand(8, device="cuda")
        mean.update(error(values, values + 1))
    mean.compute().item()
