"""Neighbours: what the nearest rows in feature space say about each label. Nothing is trained."""

from engines.contract import EngineSpec, SignalSpec

__all__ = ["SPEC", "search"]

SPEC = EngineSpec(
    name="neighbours",
    title="Neighbours",
    paper="https://arxiv.org/abs/2408.14358",
    config="NeighboursConfig",
    signals={
        "agreement": SignalSpec(
            in_export=True,
            title="Agreement of the neighbours",
            meaning=(
                "Share of the votes that the given label gets from the samples that look most alike; it is low too "
                "for a rare kind of image whose label is right."
            ),
            high_means="clean",
        ),
    },
    needs_features=True,
)
