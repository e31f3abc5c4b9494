"""What UMN is compared with in its Table 1, on the engine's own rotations, batches and networks.

``supervised``: the labeled rows alone. ``self_paced``: its small losses alone (MentorNet without a mentor).
``mean_teacher`` (Tarvainen & Valpola 2017): the guider teaches the learner on all rows. ``m_vae``: UMN with ε fixed
at the known share of wrong labels. No audit uses them.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from engines.shared.device import seeded_init
from engines.shared.losses import cross_entropy
from engines.shared.selection import keep_count
from engines.umn.equations import guider_decay
from engines.umn.model import Batch, Bench, Draws, Member
from engines.umn.networks import Encoding, PosteriorHead, Recognizer, StackedVAE, build_trunk

RAMP_SHARE = 0.2
"""Share of all steps over which mean teacher's consistency weight grows to its value."""
RAMP_DECAY = 0.99
"""Mean teacher's average while that weight still grows."""
CONSISTENCY = 100.0
"""Mean teacher's weight against the mean cross-entropy of labeled rows (published: 100 N_L / N against the
cross-entropy over the whole batch, batches drawn at random)."""


def rival(method: str, noise_rate: float) -> type[Member]:
    """The members of one of ``umn``, ``m_vae``, ``supervised``, ``self_paced`` and ``mean_teacher``.

    ``noise_rate``: share of wrong labels, which only ``m_vae`` and ``self_paced`` are told.
    """
    if method == "umn":
        return Member
    kind = {"m_vae": MVAE, "supervised": Supervised, "self_paced": SelfPaced, "mean_teacher": MeanTeacher}[
        method
    ]
    return type(kind.__name__, (kind,), {"noise_rate": noise_rate})


class MVAE(Member):
    """UMN with the known noise rate for ε."""

    noise_rate: float

    def weight(self, epsilon: Tensor) -> Tensor:
        return super().weight(torch.full_like(epsilon, self.noise_rate))


def select_small_loss(losses: Tensor, count: int) -> Tensor:
    """Positions of the ``count`` smallest losses: (B,) -> (count,) int64, in rising position.

    Stable: among equal losses the earlier sample is kept. NaN counts as the largest loss. Rising position
    (not rising loss) makes keeping everything the same sum, bit for bit, as not selecting at all.
    """
    return torch.sort(losses, stable=True).indices[:count].sort().values


class Supervised(Member):
    """Cross-entropy on the labeled rows; the guider is the learner."""

    noise_rate: float
    uses_unlabeled = False

    def build(self) -> StackedVAE:
        if not self.uses_unlabeled:
            self.unlabeled_rows = self.unlabeled_rows[:0]
        with seeded_init(self.bench.seed, "network", self.rotation):
            return ClassifierAlone(self.bench).to(self.bench.device)

    def decay(self) -> float:
        return 0.0

    def loss(self, batch: Batch, epoch: int, draws: Draws) -> tuple[Tensor, dict[str, Tensor]]:
        _, logits = self.recognizer(self.bench.network_input(batch.images, draws.noise))
        front = slice(0, batch.num_labeled)
        labels = batch.labels[front]
        losses = cross_entropy(logits[front], labels)
        loss, parts = self.objective(losses, logits, batch, epoch, draws)
        hits = (logits[front].argmax(1) == labels).float().mean()
        return loss, {"cross_entropy": losses.detach().mean(), "train_accuracy": hits, **parts}

    def objective(
        self, losses: Tensor, logits: Tensor, batch: Batch, epoch: int, draws: Draws
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """What is descended on, from the losses of the labeled rows, and parts of it to report."""
        del logits, batch, epoch, draws
        return losses.mean(), {}


class SelfPaced(Supervised):
    """The smallest losses, as many as labels are right, after a tenth of the epochs."""

    def objective(
        self, losses: Tensor, logits: Tensor, batch: Batch, epoch: int, draws: Draws
    ) -> tuple[Tensor, dict[str, Tensor]]:
        del logits, batch, draws
        drop = self.noise_rate * min(1.0, (epoch + 1) / max(1, self.bench.config.epochs // 10))
        return losses[select_small_loss(losses.detach(), keep_count(1.0 - drop, len(losses)))].mean(), {}


class MeanTeacher(Supervised):
    """The labeled rows' cross-entropy, and the squared distance to the guider on all rows."""

    uses_unlabeled = True

    def __init__(self, bench: Bench, rotation: int, is_hidden: np.ndarray) -> None:
        super().__init__(bench, rotation, is_hidden)
        self.ramp_steps = max(1, round(RAMP_SHARE * self.total_steps))
        self.consistency_weight = CONSISTENCY * self.num_labeled / (self.num_labeled + self.num_unlabeled)

    def decay(self) -> float:
        return guider_decay(
            self.step, min(self.gamma, RAMP_DECAY) if self.step < self.ramp_steps else self.gamma
        )

    def objective(
        self, losses: Tensor, logits: Tensor, batch: Batch, epoch: int, draws: Draws
    ) -> tuple[Tensor, dict[str, Tensor]]:
        del epoch
        teacher = self.guider_probs(batch, len(batch.rows), draws)
        left = max(0.0, 1 - self.step / self.ramp_steps)
        distance = (logits.float().softmax(1) - teacher).square().mean()
        consistency = self.consistency_weight * math.exp(-5 * left**2) * distance
        # Mean teacher averages over the whole batch, unlabeled rows adding 0, as U10 does.
        return losses.sum() / len(batch.labels) + consistency, {"consistency": consistency.detach()}


class ClassifierAlone(StackedVAE):
    """No latent, no generator: one hidden layer of C*H*W units for ``umn_mlp`` (published), else the network."""

    def __init__(self, bench: Bench) -> None:
        nn.Module.__init__(self)
        channels, *size = bench.run.rows.shape
        if bench.network_name == "umn_mlp":
            trunk: nn.Module = _OneHidden(channels * math.prod(size), bench.num_classes)
        else:
            trunk, _ = build_trunk(
                bench.network_name,
                channels=channels,
                image_size=(size[0], size[1]),
                num_classes=bench.num_classes,
            )
        self.recognizer = _NoPosterior(trunk)


class _OneHidden(nn.Module):
    def __init__(self, pixels: int, num_classes: int) -> None:
        super().__init__()
        self.first, self.classifier = nn.Linear(pixels, pixels), nn.Linear(pixels, num_classes)
        nn.init.kaiming_uniform_(self.first.weight, nonlinearity="relu")

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = self.first(images.flatten(1)).relu()
        return hidden, hidden, self.classifier(hidden)


class _NoPosterior(Recognizer):
    """A trunk that classifies."""

    def __init__(self, trunk: nn.Module) -> None:
        super().__init__(trunk, PosteriorHead(1, 1), None)

    def encode(self, images: Tensor) -> Encoding:
        _, pooled, logits = self.trunk(images)
        return Encoding(pooled, torch.zeros_like(pooled), pooled, logits)
