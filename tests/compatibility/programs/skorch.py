import numpy as np
import torch
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier

X = np.arange(64, dtype="float32").reshape(16, 4)
Y = np.arange(16) % 2


def _net(**options):
    layers = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Softmax(-1))
    return NeuralNetClassifier(layers, max_epochs=2, device="cuda", verbose=0, **options)


def fit():
    """Fits with validation, and predicts."""
    _net().fit(X, Y).predict(X)


def pipeline():
    """Cross-validation of a pipeline of scikit-learn."""
    scores = cross_val_score(make_pipeline(StandardScaler(), _net(train_split=None)), X, Y, cv=2)
    assert len(scores) == 2
