"""What engines for masks share: a U-Net, its config, and the loop around a method's own step."""

__all__ = ["config", "loop", "network"]
