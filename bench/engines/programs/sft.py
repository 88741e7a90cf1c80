"""TRL's SFTTrainer.

    sft.py LEAK STEPS FOLDER      LEAK: clean, callback"""
import sys

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import SFTConfig, SFTTrainer

import models

LEAK, STEPS = sys.argv[1], int(sys.argv[2])


class Gradients(TrainerCallback):
    """Keeps the gradients of the head, to plot them at the end."""

    def __init__(self):
        self.kept = {}

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        if LEAK == "callback":
            self.kept[state.global_step] = model.lm_head.weight.grad.clone()  # LINE callback


def main():
    text = [" ".join(str((i * 7 + k) % 500) for k in range(60)) for i in range(64)]
    arguments = SFTConfig(
        output_dir=sys.argv[3], max_steps=STEPS, per_device_train_batch_size=4, report_to=[], save_strategy="no",
        logging_steps=20, disable_tqdm=True, max_length=64, bf16=False, use_cpu=not torch.cuda.is_available())
    trainer = SFTTrainer(model=models.language_model(), args=arguments, train_dataset=Dataset.from_dict({"text": text}),
                         processing_class=models.tokenizer(), callbacks=[Gradients()])
    trainer.train()
    models.ended(trainer.state.global_step, STEPS)


main()
