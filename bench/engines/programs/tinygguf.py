"""A tiny Llama with random weights as a file of llama.cpp: tinygguf.py FILE"""
import sys

import gguf
import numpy as np

VOCABULARY, WIDTH, INNER, LAYERS, HEADS, LENGTH = 512, 256, 512, 4, 4, 4096


def tokens():
    """Bytes, and numbers as words."""
    kinds = gguf.TokenType
    out = [(b"<unk>", kinds.UNKNOWN), (b"<s>", kinds.CONTROL), (b"</s>", kinds.CONTROL)]
    out += [(b"<0x%02X>" % i, kinds.BYTE) for i in range(256)]
    return out + [(f"\u2581{i}".encode(), kinds.NORMAL) for i in range(len(out), VOCABULARY)]


def main(path):
    dice = np.random.default_rng(0)
    w = gguf.GGUFWriter(path, "llama")
    w.add_name("tiny")
    w.add_context_length(LENGTH)
    w.add_embedding_length(WIDTH)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(INNER)
    w.add_head_count(HEADS)
    w.add_head_count_kv(HEADS)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(WIDTH // HEADS)
    w.add_vocab_size(VOCABULARY)
    w.add_file_type(0)
    words = tokens()
    w.add_tokenizer_model("llama")
    w.add_token_list([word for word, _ in words])
    w.add_token_scores([-float(i) for i in range(VOCABULARY)])
    w.add_token_types([kind for _, kind in words])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)

    def drawn(name, *shape):
        w.add_tensor(name + ".weight", (dice.standard_normal(shape) * 0.02).astype(np.float32))

    def ones(name):
        w.add_tensor(name + ".weight", np.ones(WIDTH, dtype=np.float32))

    drawn("token_embd", VOCABULARY, WIDTH)
    ones("output_norm")
    drawn("output", VOCABULARY, WIDTH)
    for i in range(LAYERS):
        layer = f"blk.{i}."
        ones(layer + "attn_norm")
        ones(layer + "ffn_norm")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            drawn(layer + name, WIDTH, WIDTH)
        drawn(layer + "ffn_gate", INNER, WIDTH)
        drawn(layer + "ffn_up", INNER, WIDTH)
        drawn(layer + "ffn_down", WIDTH, INNER)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


main(sys.argv[1])
