"""Learning to Bootstrap, meta-learned weights of the given and the pseudo-label."""

from engines.contract import EngineSpec, SignalSpec

__all__ = ["SPEC"]

SPEC = EngineSpec(
    name="l2b",
    title="L2B, Learning to Bootstrap",
    paper="https://arxiv.org/abs/2202.04291",
    config="L2BConfig",
    signals={
        "alpha": SignalSpec(
            in_export=True,
            title="L2B weight of the given label α",
            meaning=(
                "How much the believed samples gained from this given label late in training (1 = ordinary); low "
                "for learned labels, right or wrong, so it tells hard from easy rather than wrong from right."
            ),
            high_means="neither",
        ),
        "beta": SignalSpec(
            in_export=True,
            title="L2B weight of the pseudo-label β",
            meaning=(
                "How much the believed samples gained from the network's own label for this image; near 0 for "
                "all images that are already learned."
            ),
            high_means="neither",
        ),
        "share": SignalSpec(
            title="L2B share α / (α + β)",
            meaning=(
                "Whether the given label helped more than the network's own; exactly one half, and saying "
                "nothing, where the two are the same label."
            ),
            high_means="clean",
        ),
        "alpha_signed": SignalSpec(
            title="L2B signed α",
            meaning=(
                "Gain of the believed samples before negative values are cut off; a negative label did harm, but "
                "the size mostly says how hard the image is."
            ),
            high_means="clean",
        ),
        "harmful": SignalSpec(
            title="L2B share of harmful visits",
            meaning="How often late in training the given label pulled against the believed samples.",
            high_means="suspect",
        ),
        "visit_trust": SignalSpec(
            title="L2B trust of visits",
            meaning=(
                "Mean over late visits of 1 where network and given label agree and help, else the share of the "
                "given label; it follows what the network predicts."
            ),
            high_means="clean",
        ),
        "alpha_residual": SignalSpec(
            title="L2B residual α",
            meaning=(
                "Pull of the given label along what the believed samples want, per unit of error, after "
                "training; it finds systematic mix-ups of classes well and scattered human errors hardly."
            ),
            high_means="clean",
        ),
        "believed": SignalSpec(
            title="L2B belief in the given label",
            meaning=(
                "How clean the loss of this given label looks beside all others: after training, or with the "
                "bases divide_mix, unicon and c2d as the mean over their epochs and both networks."
            ),
            high_means="clean",
        ),
    },
)
