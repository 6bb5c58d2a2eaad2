import tempfile

import torch
from peft import IA3Config, LoraConfig, PeftModel, PromptTuningConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel


def _base():
    return GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=64, n_positions=32))


def _train(config):
    model = get_peft_model(_base(), config).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    ids = torch.ones(2, 4, dtype=torch.long, device="cuda")
    for _ in range(2):
        loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    loss.item()
    return model


def lora():
    """LoRA: training, merged into the model."""
    _train(
        LoraConfig(task_type="CAUSAL_LM", target_modules=["c_attn"], fan_in_fan_out=True)
    ).merge_and_unload()


def lora_saved():
    """LoRA: saved and loaded."""
    model = _train(LoraConfig(task_type="CAUSAL_LM", target_modules=["c_attn"], fan_in_fan_out=True))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        PeftModel.from_pretrained(_base(), folder).to("cuda")


def ia3():
    """IA3: training."""
    _train(
        IA3Config(
            task_type="CAUSAL_LM",
            target_modules=["c_attn", "c_fc"],
            feedforward_modules=["c_fc"],
            fan_in_fan_out=True,
        )
    )


def prompt_tuning():
    """Prompt tuning: training."""
    _train(PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2))
