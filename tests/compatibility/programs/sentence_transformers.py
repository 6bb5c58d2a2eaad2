import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer, losses, util
from sentence_transformers.models import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "small", "model"]
CONFIG = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def _model():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "vocab.txt").write_text("\n".join(WORDS))
        BertModel(BertConfig(**CONFIG, vocab_size=len(WORDS))).save_pretrained(folder)
        BertTokenizer(str(Path(folder, "vocab.txt"))).save_pretrained(folder)
        layer = Transformer(folder)
    return SentenceTransformer(modules=[layer, Pooling(16)], device="cuda")


def encode():
    """Encodes sentences and compares them."""
    vectors = _model().encode(["a model", "a small model"], convert_to_tensor=True, show_progress_bar=False)
    util.cos_sim(vectors, vectors)[0, 1].item()


def encode_to_numpy():
    """Encodes sentences to an array of NumPy."""
    assert _model().encode(["a model", "small"], batch_size=1, show_progress_bar=False).shape == (2, 16)


def training():
    """A step with a loss of pairs."""
    model = _model()
    loss = losses.MultipleNegativesRankingLoss(model)
    pairs = [model.tokenize(["a model", "small"]) for _ in range(2)]
    pairs = [
        {name: value.to("cuda") for name, value in each.items() if torch.is_tensor(value)} for each in pairs
    ]
    loss(pairs, torch.empty(0)).backward()
