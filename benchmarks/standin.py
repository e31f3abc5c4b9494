"""A stand-in for a pretrained backbone: a network of timm trained on the clean labels of half of CIFAR-10.

No pretrained weights can be had where this project is built, so the benchmark of backbones makes its own: the
first 25,000 training images with their *clean* labels, enlarged to 64 px. The other half is what is audited.

    python -m benchmarks.standin --out ~/standin [--epochs 16]

Writes ``resnet10t.safetensors`` and ``standin.json`` into the folder; a run that was stopped is resumed.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import timm
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch.nn import functional

from benchmarks import images as image_sets

NETWORK = "resnet10t"
SIDE = 64
HALF = 25_000
"""Rows before this one train the stand-in; the others are audited."""


def augmented(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Flip half of a (B, 3, 32, 32) batch and shift each image by up to four pixels."""
    flip = torch.rand(len(images), generator=generator) < 0.5
    images = torch.where(flip[:, None, None, None], images.flip(3), images)
    padded = functional.pad(images, (4, 4, 4, 4), mode="reflect")
    shifts = torch.randint(0, 9, (len(images), 2), generator=generator)
    return torch.stack(
        [image[:, y : y + 32, x : x + 32] for image, (y, x) in zip(padded, shifts.tolist(), strict=True)]
    )


def prepared(images: torch.Tensor) -> torch.Tensor:
    """uint8 images as the network sees them: 64 px, timm's mean and deviation of ImageNet."""
    mean = torch.tensor(timm.data.IMAGENET_DEFAULT_MEAN)[:, None, None]
    std = torch.tensor(timm.data.IMAGENET_DEFAULT_STD)[:, None, None]
    scaled = functional.interpolate(images.float() / 255, size=SIDE, mode="bicubic", antialias=True)
    return ((scaled - mean) / std).contiguous(memory_format=torch.channels_last)


def accuracy(model: torch.nn.Module, images: torch.Tensor, labels: NDArray[np.int64]) -> float:
    """Share of right predictions."""
    model.eval()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        said = torch.cat([model(prepared(part)).argmax(1) for part in images.split(500)])
    return float((said.numpy() == labels).mean())


def main() -> None:
    """Train, one epoch after the other, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=16)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    pixels, columns = image_sets.load("cifar10-train")
    images, labels = torch.from_numpy(pixels), columns["label"].to_numpy()
    model = timm.create_model(NETWORK, num_classes=10).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    steps = arguments.epochs * (HALF // 128)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=steps, pct_start=0.25)
    state_path = arguments.out / "state.pt"
    first, log = 0, []
    if state_path.exists():
        state = torch.load(state_path, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        first, log = state["epoch"], state["log"]
    for epoch in range(first, arguments.epochs):
        began = time.perf_counter()
        generator = torch.Generator().manual_seed(epoch)
        model.train()
        order = torch.randperm(HALF, generator=generator)
        for start in range(0, HALF - 127, 128):
            rows = order[start : start + 128]
            with torch.autocast("cpu", torch.bfloat16):
                logits = model(prepared(augmented(images[rows], generator)))
            target = torch.from_numpy(labels[rows.numpy()])
            loss = functional.cross_entropy(logits.float(), target, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        log.append({"epoch": epoch + 1, "loss": loss.item(), "seconds": time.perf_counter() - began})
        print(log[-1], flush=True)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        state |= {"schedule": schedule.state_dict(), "epoch": epoch + 1, "log": log}
        torch.save(state, state_path.with_suffix(".new"))
        state_path.with_suffix(".new").replace(state_path)
    # The file format refuses channels-last strides.
    weights = {name: value.contiguous() for name, value in model.state_dict().items()}
    save_file(weights, arguments.out / f"{NETWORK}.safetensors")
    right = accuracy(model, images[HALF : HALF + 10_000], labels[HALF : HALF + 10_000])
    summary = {"network": NETWORK, "side": SIDE, "epochs": arguments.epochs, "accuracy_other_half": right}
    (arguments.out / "standin.json").write_text(json.dumps(summary | {"log": log}, indent=1))
    print(summary)


if __name__ == "__main__":
    main()
