"""What engines for numbers share: a predicted mixture, its config, and the loop around a method's own step."""

__all__ = ["config", "densities", "loop"]
