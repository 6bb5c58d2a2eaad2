import tempfile

import torch
import transformers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
    WhisperConfig,
    WhisperForConditionalGeneration,
)
from transformers.modeling_outputs import BaseModelOutput

SIZES = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "vocab_size": 64}
LLAMA = {**SIZES, "num_hidden_layers": 2, "num_key_value_heads": 2}


def _train(**options):
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=16, vocab_size=64, n_positions=32))
    rows = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(8)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = {"max_steps": 3, "per_device_train_batch_size": 2, "report_to": [], "save_strategy": "no"}
        trainer = Trainer(
            model,
            TrainingArguments(folder, **arguments, disable_tqdm=True, **options),
            train_dataset=rows,
            eval_dataset=rows,
        )
        trainer.train()
        trainer.evaluate()
    return trainer


def _llama(**options):
    return LlamaForCausalLM(LlamaConfig(**LLAMA, **options)).to("cuda").eval()


def _step(model, **inputs):
    optimizer = torch.optim.AdamW(model.parameters())
    loss = model(**inputs).loss
    loss.backward()
    optimizer.step()
    return loss.item()


def trainer():
    """Trainer: training that logs every step, evaluation."""
    assert _train(logging_steps=1).model.device.type == "cuda"


def trainer_bfloat16_compiled():
    """Trainer: bfloat16, torch_compile, gradient checkpointing, checkpoints."""
    _train(bf16=True, torch_compile=True, gradient_checkpointing=True, eval_strategy="steps", eval_steps=2)


def trainer_float16_accumulated():
    """Trainer: float16 with a gradient scaler, gradient accumulation."""
    _train(fp16=True, gradient_accumulation_steps=2)


def trainer_checkpoint():
    """Trainer: saves a checkpoint and loads it."""
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=64, n_positions=32))
    rows = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(8)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, max_steps=2, save_steps=1, per_device_train_batch_size=2, report_to=[], disable_tqdm=True
        )
        Trainer(model, arguments, train_dataset=rows).train()
        arguments.max_steps = 3
        last = f"{folder}/checkpoint-2"
        Trainer(model, arguments, train_dataset=rows).train(resume_from_checkpoint=last)


def generate_sampling():
    """Generate: sampling with top-k and a cache."""
    ids = torch.ones(2, 4, dtype=torch.long, device="cuda")
    assert _llama().generate(ids, max_new_tokens=4, do_sample=True, top_k=5).shape[0] == 2


def generate_beams():
    """Generate: beam search."""
    ids = torch.ones(2, 4, dtype=torch.long, device="cuda")
    assert _llama().generate(ids, max_new_tokens=4, num_beams=2).shape[0] == 2


def generate_static_cache():
    """Generate: a static cache."""
    ids = torch.ones(1, 4, dtype=torch.long, device="cuda")
    _llama().generate(ids, max_new_tokens=4, cache_implementation="static")


def mixture_of_experts():
    """Mixture of experts: a training step of Mixtral."""
    config = MixtralConfig(**{**LLAMA, "num_hidden_layers": 1}, num_local_experts=4)
    ids = torch.ones(2, 4, dtype=torch.long, device="cuda")
    _step(MixtralForCausalLM(config).to("cuda"), input_ids=ids, labels=ids)


def flex_attention():
    """Attention by flex_attention: a training step."""
    ids = torch.ones(2, 16, dtype=torch.long, device="cuda")
    _step(_llama(attn_implementation="flex_attention").train(), input_ids=ids, labels=ids)


def classifier():
    """BERT with padding: a training step."""
    model = BertForSequenceClassification(BertConfig(**SIZES, num_hidden_layers=2)).to("cuda")
    ids = torch.ones(2, 8, dtype=torch.long, device="cuda")
    mask = torch.tensor([[1] * 8, [1] * 4 + [0] * 4], device="cuda")
    _step(model, input_ids=ids, attention_mask=mask, labels=torch.tensor([0, 1], device="cuda"))


def vision():
    """ViT: a training step under autocast."""
    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=16,
        patch_size=8,
    )
    model = ViTForImageClassification(config).to("cuda")
    with torch.autocast("cuda", torch.bfloat16):
        _step(model, pixel_values=torch.rand(2, 3, 16, 16, device="cuda"), labels=torch.tensor([0, 1]).cuda())


def encoder_decoder():
    """T5: a training step and generate."""
    config = T5Config(
        d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, vocab_size=64, decoder_start_token_id=0
    )
    model = T5ForConditionalGeneration(config).to("cuda")
    ids = torch.ones(2, 4, dtype=torch.long, device="cuda")
    _step(model, input_ids=ids, labels=ids)
    model.eval().generate(ids, max_new_tokens=3)


def speech():
    """Whisper: generate from the encoder's output."""
    config = WhisperConfig(
        vocab_size=64,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        num_mel_bins=8,
        max_source_positions=8,
        max_target_positions=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    model = WhisperForConditionalGeneration(config).to("cuda").eval()
    states = BaseModelOutput(last_hidden_state=torch.rand(1, 8, 16, device="cuda"))
    ids = torch.ones(1, 1, dtype=torch.long, device="cuda")
    model(encoder_outputs=states, decoder_input_ids=ids).logits.argmax(-1).cpu()


def saved_and_loaded():
    """A model saved by save_pretrained and loaded onto the device."""
    with tempfile.TemporaryDirectory() as folder:
        _llama().save_pretrained(folder)
        loaded = transformers.AutoModelForCausalLM.from_pretrained(folder, device_map="cuda")
    assert loaded.device.type == "cuda"
