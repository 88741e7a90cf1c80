"""TRL's GRPOTrainer, which generates, scores and trains.

    grpo.py LEAK STEPS FOLDER      LEAK: clean, rewards"""
import sys

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

import models

LEAK, STEPS = sys.argv[1], int(sys.argv[2])
CACHE = {}


def reward(completions, **kwargs):
    """Rewards short answers, and caches features of each."""
    if LEAK == "rewards":
        device = "cuda" if torch.cuda.is_available() else "cpu"
        for text in completions:
            CACHE[len(CACHE)] = torch.zeros(64 * 1024, device=device)  # LINE rewards
    return [-float(len(c)) for c in completions]


def main():
    text = [" ".join(str((i * 7 + k) % 500) for k in range(12)) for i in range(64)]
    arguments = GRPOConfig(
        output_dir=sys.argv[3], max_steps=STEPS, per_device_train_batch_size=4, num_generations=4, report_to=[],
        save_strategy="no", logging_steps=20, disable_tqdm=True, max_completion_length=8,
        bf16=False, use_cpu=not torch.cuda.is_available())
    trainer = GRPOTrainer(model=models.language_model(), args=arguments, train_dataset=Dataset.from_dict({"prompt": text}),
                          processing_class=models.tokenizer(), reward_funcs=reward)
    trainer.train()
    models.ended(trainer.state.global_step, STEPS)


main()
