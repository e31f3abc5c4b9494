"""ChoiceNet (Choi et al.), a mixture whose components are correlated with one target."""

from engines.contract import EngineSpec, SignalSpec

__all__ = ["SPEC"]

SPEC = EngineSpec(
    name="choicenet",
    title="ChoiceNet",
    paper="https://arxiv.org/abs/1805.06431",
    config="ChoiceNetConfig",
    other_configs={"numbers": "ChoiceNetNumberConfig"},
    signals={
        "rho": SignalSpec(
            "ChoiceNet correlation ρ",
            "Correlation with the target of the components that explain this label; low where only "
            "off-target components do. Erratic as a detector: read it as explanation.",
            "clean",
            in_export=True,
        ),
        "gamma_1": SignalSpec(
            "ChoiceNet γ₁",
            "Posterior probability that the target component produced this label.",
            "clean",
        ),
        "p_target": SignalSpec(
            "ChoiceNet target probability",
            "Probability that the target component gives this label; the dependable one of these signals.",
            "clean",
        ),
        "rho_x": SignalSpec(
            "ChoiceNet ρ of the image",
            "Average correlation of the components for this image; it does not know the label.",
            "neither",
        ),
        "pi_1": SignalSpec(
            "ChoiceNet π₁",
            "Weight of the target component for this image; it does not know the label.",
            "neither",
        ),
    },
)
