"""Hugging Face's Trainer, with a leak that users plant.

    trainer.py LEAK STEPS      LEAK: clean, callback, metrics, hook, model"""
import sys

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

import models

LEAK, STEPS = sys.argv[1], int(sys.argv[2])


class LossHistory(TrainerCallback):
    """Keeps what it saw of each step."""

    def __init__(self):
        self.history = []

    def on_step_end(self, args, state, control, model=None, **kwargs):
        if LEAK == "callback":
            self.history.append(model.lm_head.weight.detach().clone())  # LINE callback


class Run(Trainer):
    outputs, logits = [], []

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        out = model(**inputs)
        if LEAK == "metrics":
            Run.outputs.append(out.loss)  # HOLDS metrics
        if LEAK == "logits":
            Run.logits.append(out.logits.detach().float().softmax(-1))  # LINE logits
        return (out.loss, out) if return_outputs else out.loss


def main():
    model = models.language_model()
    if LEAK == "hook":
        seen = []
        model.model.layers[0].mlp.register_forward_hook(
            lambda module, args, out: seen.append(out.detach().clone()))  # LINE hook
    arguments = TrainingArguments(
        output_dir=sys.argv[3], max_steps=STEPS, per_device_train_batch_size=8, report_to=[], logging_steps=10,
        save_strategy="no", disable_tqdm=True, use_cpu=not torch.cuda.is_available())
    trainer = Run(model=model, args=arguments, train_dataset=models.Tokens(64), callbacks=[LossHistory()])
    trainer.train()
    models.ended(trainer.state.global_step, STEPS)


main()
