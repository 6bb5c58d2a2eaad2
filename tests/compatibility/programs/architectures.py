"""Architectures of transformers: forward, backward, a step of AdamW, and generate where there is one."""

import warnings

import torch
import transformers
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()

NAMES = """
    gpt2 gpt_neo gpt_neox gptj opt bloom llama mistral mixtral qwen2 qwen2_moe qwen3 qwen3_moe gemma
    gemma2 gemma3_text phi phi3 mpt stablelm starcoder2 olmo olmo2 olmoe cohere granite granitemoe
    deepseek_v2 deepseek_v3 mamba mamba2 rwkv codegen biogpt xglm persimmon nemotron glm glm4 gpt_oss
    llama4_text smollm3 ernie4_5 hunyuan_v1_dense lfm2 minimax arcee exaone4 helium bert roberta electra
    bart marian falcon_mamba phimoe diffllama apertus seed_oss
    zamba2 bamba jamba falcon_h1 nemotron_h qwen3_next
""".split()
# Every width, depth and number that a configuration may have, under all its names.
SMALL = {
    **dict.fromkeys("hidden_size n_embd d_model embedding_size attention_hidden_size".split(), 32),
    **dict.fromkeys("moe_intermediate_size shared_expert_intermediate_size".split(), 32),
    **dict.fromkeys("intermediate_size ffn_dim n_inner ffn_hidden_size block_size max_seq_len".split(), 64),
    **dict.fromkeys("encoder_ffn_dim decoder_ffn_dim max_position_embeddings n_positions".split(), 64),
    **dict.fromkeys("num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers".split(), 2),
    **dict.fromkeys("num_attention_heads n_head n_heads num_heads mamba_n_heads num_experts".split(), 4),
    **dict.fromkeys("num_local_experts n_routed_experts".split(), 4),
    **dict.fromkeys("encoder_attention_heads decoder_attention_heads".split(), 4),
    **dict.fromkeys("head_dim kv_lora_rank q_lora_rank qk_rope_head_dim qk_nope_head_dim".split(), 8),
    **dict.fromkeys("v_head_dim rotary_dim state_size mamba_d_state hidden_size_per_layer_input".split(), 8),
    **dict.fromkeys(
        "n_group topk_group first_k_dense_replace bos_token_id decoder_start_token_id".split(), 1
    ),
    **dict.fromkeys("num_key_value_heads num_experts_per_tok eos_token_id".split(), 2),
    **{"vocab_size": 99, "pad_token_id": 0, "sliding_window": 16, "mamba_d_head": 16},
}
# Layers of a state space beside layers of attention.
STATES = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1}
BESIDES = {
    "deepseek_v2": {"num_key_value_heads": 4},
    "deepseek_v3": {"num_key_value_heads": 4},
    "gpt_neo": {"num_layers": 2, "attention_types": [[["global", "local"], 1]], "num_heads": 4},
    "zamba2": {
        **{"num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid"] * 2, "hybrid_layer_ids": [1, 3]},
        **{
            "num_key_value_heads": 4,
            "n_mamba_heads": 4,
            "mamba_headdim": 16,
            "mamba_ngroups": 1,
            "chunk_size": 16,
        },
        **{"num_mem_blocks": 1, "attention_hidden_size": 64, "attention_head_dim": 16},
    },
    "bamba": {**STATES, "attn_layer_indices": [1], "mamba_expand": 2, "mamba_chunk_size": 16},
    "jamba": {
        **{"attn_layer_period": 2, "attn_layer_offset": 1},
        **{"expert_layer_period": 2, "expert_layer_offset": 1},
        **{"mamba_d_state": 8, "mamba_dt_rank": 4, "use_mamba_kernels": False},
    },
    "falcon_h1": {**STATES, "mamba_d_ssm": 64, "mamba_chunk_size": 16},
    "nemotron_h": {
        **{"layers_block_type": ["mamba", "attention", "moe"], "num_hidden_layers": 3, "n_groups": 1},
        **{"mamba_num_heads": 4, "mamba_head_dim": 16, "ssm_state_size": 8, "chunk_size": 16},
    },
    "qwen3_next": {
        **{"layer_types": ["linear_attention", "full_attention"], "linear_num_value_heads": 4},
        **{"linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8},
    },
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 1, "expand": 2},
}


def run(number):
    """The architecture at this place of NAMES, tiny and random."""
    name = NAMES[number]
    known = CONFIG_MAPPING[name]()
    options = {key: value for key, value in SMALL.items() if hasattr(known, key)} | BESIDES.get(name, {})
    model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[name](**options)).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    ids = torch.randint(3, 90, (2, 8)).to("cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if model.eval().can_generate():
        model.generate(ids, max_new_tokens=3, do_sample=False)
