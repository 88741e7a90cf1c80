"""A tiny Llama as a GGUF file with random weights: mkgguf.py FILE"""
import sys
import numpy as np
import gguf

V, D, F, L, H, CTX = 512, 256, 512, 4, 4, 4096
rng = np.random.default_rng(0)
w = gguf.GGUFWriter(sys.argv[1], "llama")
w.add_name("tiny"); w.add_context_length(CTX); w.add_embedding_length(D); w.add_block_count(L); w.add_feed_forward_length(F)
w.add_head_count(H); w.add_head_count_kv(H); w.add_layer_norm_rms_eps(1e-5); w.add_rope_dimension_count(D // H); w.add_vocab_size(V); w.add_file_type(0)
tokens, scores, types = [], [], []
for i in range(V):
    if i == 0: tokens.append(b"<unk>"); types.append(gguf.TokenType.UNKNOWN)
    elif i in (1, 2): tokens.append([b"", b"<s>", b"</s>"][i]); types.append(gguf.TokenType.CONTROL)
    elif i < 259: tokens.append(b"<0x%02X>" % (i - 3)); types.append(gguf.TokenType.BYTE)
    else: tokens.append(("\u2581" + str(i)).encode()); types.append(gguf.TokenType.NORMAL)
    scores.append(-float(i))
w.add_tokenizer_model("llama"); w.add_token_list(tokens); w.add_token_scores(scores); w.add_token_types(types)
w.add_bos_token_id(1); w.add_eos_token_id(2); w.add_unk_token_id(0)
def t(name, *shape): w.add_tensor(name, (rng.standard_normal(shape) * 0.02).astype(np.float32))
def one(name, n): w.add_tensor(name, np.ones(n, dtype=np.float32))
t("token_embd.weight", V, D); one("output_norm.weight", D); t("output.weight", V, D)
for i in range(L):
    p = f"blk.{i}."
    one(p + "attn_norm.weight", D); one(p + "ffn_norm.weight", D)
    for n in ("attn_q", "attn_k", "attn_v", "attn_output"): t(p + n + ".weight", D, D)
    t(p + "ffn_gate.weight", F, D); t(p + "ffn_up.weight", F, D); t(p + "ffn_down.weight", D, F)
w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
