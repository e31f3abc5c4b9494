"""Co-teaching with a keep rate searched by S2E."""

from engines.contract import EngineSpec, SignalSpec

__all__ = ["SPEC"]

SPEC = EngineSpec(
    name="coteaching",
    title="Co-teaching with S2E",
    paper="https://arxiv.org/abs/1911.02377",
    config="CoteachingConfig",
    signals={
        "selected": SignalSpec(
            in_export=True,
            title="Co-teaching selection rate",
            meaning=(
                "How often the two networks kept the sample among their small losses, epochs that dropped "
                "more counting more; it misleads where the schedule drops far more or less than is wrong."
            ),
            high_means="clean",
        ),
        "loss_rank": SignalSpec(
            title="Loss rank",
            meaning=(
                "The rank of the sample's loss among all, from 0 (smallest) to 1, at the end of training; a "
                "hard image ranks high with a right label too."
            ),
            high_means="suspect",
        ),
        "rejected": SignalSpec(
            title="Rejected by both networks",
            meaning=(
                "Share of the last epochs in which both networks would have dropped the sample; searched "
                "schedules drop more than is wrong, so dropped does not mean wrong."
            ),
            high_means="suspect",
        ),
    },
)
