"""Denoises images with a U-Net of diffusers, by its scheduler.

    images.py KIND STEPS FOLDER      KIND: clean, gallery, steps"""
import sys

import torch
from diffusers import DDIMScheduler, UNet2DModel

import models

KIND, STEPS = sys.argv[1], int(sys.argv[2])
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Service:
    """Makes an image for each request."""

    def __init__(self):
        self.unet = UNet2DModel(sample_size=32, block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8,
                                down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D")).to(DEVICE)
        self.scheduler = DDIMScheduler()
        self.scheduler.set_timesteps(4)
        self.gallery, self.seen = {}, []

    @torch.no_grad()
    def image(self, request):
        x = torch.zeros(4, 3, 32, 32, device=DEVICE)
        for t in self.scheduler.timesteps:
            x = self.scheduler.step(self.unet(x, t).sample, t, x).prev_sample
            if KIND == "steps":
                self.seen.append(x.repeat(4, 1, 1, 1))  # LINE steps
        out = (x / 2 + 0.5).repeat(16, 1, 1, 1)  # LINE gallery
        if KIND == "gallery":
            self.gallery[request] = out  # HOLDS gallery
        return out.cpu()


def main():
    service = Service()
    for request in range(STEPS):
        service.image(request)
    models.ended(request + 1, STEPS, 0)


main()
