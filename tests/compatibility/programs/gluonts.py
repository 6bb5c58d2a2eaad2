import numpy as np
import pandas as pd
from gluonts.dataset.pandas import PandasDataset
from gluonts.torch import DeepAREstimator


def forecast():
    """DeepAR: one epoch, and samples of the hours that follow."""
    hours = pd.date_range("2020-01-01", periods=120, freq="h")
    frame = pd.DataFrame({"target": np.sin(np.arange(120)).astype("float32")}, index=hours)
    data = PandasDataset(frame, target="target")
    quietly = {"max_epochs": 1, "accelerator": "gpu", "enable_progress_bar": False, "logger": False}
    size = {"context_length": 8, "num_layers": 1, "hidden_size": 8, "batch_size": 4}
    estimator = DeepAREstimator(
        prediction_length=4, freq="h", num_batches_per_epoch=2, trainer_kwargs=quietly, **size
    )
    next(iter(estimator.train(data).predict(data)))
