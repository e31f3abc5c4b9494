"""UMN, an uncertainty for every given label from a learner and its moving average."""

from engines.contract import EngineSpec, SignalSpec

__all__ = ["SPEC"]

SPEC = EngineSpec(
    name="umn",
    title="Uncertainty Mining Net",
    paper="Is the Label Trustful: Training Better Deep Learning Model via Uncertainty Mining Net",
    config="UMNConfig",
    signals={
        "epsilon": SignalSpec(
            in_export=True,
            title="UMN uncertainty ε",
            meaning=(
                "How far the network and its moving average differ on the given label; it says that the "
                "opinion still moves, not which way, and is near 0 for a label that both firmly reject."
            ),
            high_means="neither",
        ),
        "guider_probability": SignalSpec(
            title="UMN guider's probability of the given label",
            meaning=(
                "What the slow network, trained without this label, gives to it; a hard image has a low one "
                "with a right label too."
            ),
            high_means="clean",
        ),
        "learner_probability": SignalSpec(
            title="UMN learner's probability of the given label",
            meaning=(
                "What the fast network, trained without this label, gives to it; it moves more between "
                "epochs than the guider's."
            ),
            high_means="clean",
        ),
        "networks_disagree": SignalSpec(
            title="UMN guider and learner disagree",
            meaning=(
                "1 where the two networks predict different classes; it marks images near a boundary, with "
                "right and wrong labels alike."
            ),
            high_means="neither",
        ),
    },
)
