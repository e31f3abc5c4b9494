"""Neighbours: what the nearest rows in feature space say about each label. Nothing is trained."""
