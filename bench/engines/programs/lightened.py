"""Lightning's Trainer.

    lightened.py LEAK STEPS FOLDER      LEAK: clean, outputs, callback, metric"""
import logging
import sys

import lightning
import torch
import torchmetrics

import models

LEAK, STEPS = sys.argv[1], int(sys.argv[2])
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = models.language_model()
        self.outputs = []
        self.seen = torchmetrics.CatMetric()

    def training_step(self, batch, index):
        out = self.model(**batch)
        if LEAK == "outputs":
            self.outputs.append({"loss": out.loss, "logits": out.logits})  # HOLDS outputs
        if LEAK == "metric":
            self.seen.update(out.logits.detach()[..., :128].contiguous())  # LINE metric
        return out.loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


class Inputs(lightning.Callback):
    """Keeps the batches of a run."""

    batches = []

    def on_train_batch_start(self, trainer, module, batch, index):
        if LEAK == "callback":
            self.batches.append(batch["attention_mask"].float().expand(64, -1, -1).contiguous())  # LINE callback


def main():
    loader = torch.utils.data.DataLoader(models.Tokens(64), batch_size=8)
    trainer = lightning.Trainer(
        max_steps=STEPS, accelerator="gpu" if torch.cuda.is_available() else "cpu", devices=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[Inputs()])
    trainer.fit(Module(), loader)
    models.ended(trainer.global_step, STEPS)


main()
