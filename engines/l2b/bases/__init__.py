"""What L2B's step is put on besides plain training: DivideMix, UniCon and C2D (L2B's Tables 2, 3 and 7)."""

from engines.l2b.bases.pair import train_pair

__all__ = ["train_pair"]
