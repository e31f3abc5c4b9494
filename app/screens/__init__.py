"""The screens, one a file; ``frame.py`` names them by path."""
