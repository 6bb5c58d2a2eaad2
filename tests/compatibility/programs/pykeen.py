import numpy as np
from pykeen.pipeline import pipeline
from pykeen.triples import TriplesFactory


def translated():
    """TransE on a few triples: two epochs, and ranks of the rest."""
    triples = np.array([[f"e{n % 8}", f"r{n % 2}", f"e{n * 3 % 7}"] for n in range(40)])
    training, testing = TriplesFactory.from_labeled_triples(triples).split([0.8, 0.2], random_state=0)
    pipeline(
        training=training,
        testing=testing,
        model="TransE",
        model_kwargs={"embedding_dim": 8},
        training_kwargs={"num_epochs": 2, "batch_size": 8, "use_tqdm": False},
        evaluation_kwargs={"use_tqdm": False, "batch_size": 4},
        device="cuda",
        random_seed=1,
    )
