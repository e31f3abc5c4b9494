"""One thread: these networks are tiny, and threads that wait for each other on a busy machine cost minutes."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
