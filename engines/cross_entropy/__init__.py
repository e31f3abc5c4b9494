"""Plain cross-entropy, the baseline and a full witness."""

from engines.contract import EngineSpec, SignalSpec

__all__ = ["SPEC"]

SPEC = EngineSpec(
    name="cross_entropy",
    title="Plain cross-entropy",
    paper="https://arxiv.org/abs/2001.10528",
    config="CrossEntropyConfig",
    other_configs={"masks": "MaskConfig", "numbers": "NumberConfig"},
    signals={
        "loss": SignalSpec(
            title="Loss on the given label",
            meaning=(
                "How surprised the trained network is by the given label; it fades when the network "
                "memorises, and a hard image has a high loss with a right label too."
            ),
            high_means="suspect",
        ),
        "margin": SignalSpec(
            title="Area under the margin",
            meaning=(
                "How far the given class led the best other class on average over training; it does not tell "
                "a wrong label from an image that no class fits."
            ),
            high_means="clean",
        ),
    },
)
