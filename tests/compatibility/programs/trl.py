import tempfile

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

QUIETLY = {"per_device_train_batch_size": 2, "max_steps": 1, "report_to": [], "save_strategy": "no"}


def _model():
    size = {"vocab_size": 8, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
    return GPT2LMHeadModel(GPT2Config(**size, bos_token_id=1, eos_token_id=1))


def _tokens():
    words = {"<pad>": 0, "<eos>": 1, "a": 2, "b": 3, "c": 4, "<unk>": 5}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token=list(words)[-1]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    names = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def fine_tuning():
    """SFTTrainer: a step in bfloat16, with a loss by chunks of the vocabulary."""
    data = Dataset.from_dict({"text": ["a b c a", "b c a", "c c c b a", "a a"]})
    with tempfile.TemporaryDirectory() as folder:
        how = SFTConfig(folder, bf16=True, max_length=16, **QUIETLY)
        SFTTrainer(_model(), args=how, train_dataset=data, processing_class=_tokens()).train()


def preferences():
    """DPOTrainer: a step beside a reference model."""
    names = ("prompt", "chosen", "rejected")
    rows = [("a", " b", " c"), ("b", " c", " a"), ("c", " a", " b"), ("a", " b", " a")]
    data = Dataset.from_list([dict(zip(names, row, strict=True)) for row in rows])
    with tempfile.TemporaryDirectory() as folder:
        how = DPOConfig(folder, bf16=False, **QUIETLY)
        DPOTrainer(_model(), _model(), args=how, train_dataset=data, processing_class=_tokens()).train()
