"""Tiny models with random weights, and data, made on the spot."""
import torch
from torch.utils.data import Dataset

VOCABULARY = 512
LENGTH = 64


def language_model():
    """A Llama of two layers, some 0.6 M parameters."""
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=256, use_cache=False))


def ended(steps, wanted, optimized=None):
    """Says how many of its steps a program has run, and how many an optimizer has: a judge reads it."""
    print(f"steps {steps} of {wanted}, {steps if optimized is None else optimized} of an optimizer", flush=True)


class Tokens(Dataset):
    """Random tokens, with themselves as labels."""

    def __init__(self, count):
        self.ids = torch.randint(0, VOCABULARY, (count, LENGTH))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i], "attention_mask": torch.ones(LENGTH, dtype=torch.long)}


def batches(steps, device):
    """Eight texts for each step, counted from 1."""
    data = Tokens(64)
    for step in range(steps):
        yield step + 1, {k: torch.stack([data[(step * 8 + i) % 64][k] for i in range(8)]).to(device) for k in data[0]}


def tokenizer():
    """A tokenizer of numbers as words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    words = {str(i): i for i in range(VOCABULARY - 3)}
    words.update({"<pad>": VOCABULARY - 3, "<eos>": VOCABULARY - 2, "<unk>": VOCABULARY - 1})
    bare = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    bare.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=bare, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
