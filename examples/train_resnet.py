"""Trains a ResNet on random images; try `snapviewer predict examples/train_resnet.py --gpu t4`.

`--layers` and `--batch` set its size. Needs torchvision.
"""

from __future__ import annotations

import argparse

import torch
import torchvision
from torch.nn import functional as F  # noqa: N812

CLASSES = 1000


def main() -> None:
    """Train for some steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=50, choices=(18, 34, 50, 101, 152))
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()
    model = torchvision.models.get_model(f"resnet{options.layers}", weights=None).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(10):
        images = torch.randn(options.batch, 3, 224, 224, device="cuda")
        labels = torch.randint(CLASSES, (options.batch,), device="cuda")
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
