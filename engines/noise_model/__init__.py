"""Noise model: what a sample is, and what each class is given as, by the likelihood of the given labels."""

from engines.contract import EngineSpec, SignalSpec

__all__ = ["SPEC", "reduction", "training"]

SPEC = EngineSpec(
    name="noise_model",
    title="Noise model",
    paper="https://doi.org/10.1007/978-3-642-33460-3_15",
    config="NoiseModelConfig",
    signals={
        "posterior": SignalSpec(
            in_export=True,
            title="Probability of the given label",
            meaning=(
                "How probable the given label is the true one, by what its sample looks like and what each class "
                "is given as; errors that depend on the picture and not on its class are not in this model."
            ),
            high_means="clean",
        ),
    },
    needs_features=True,
    other_configs={"sets": "NoiseModelConfig"},
)
