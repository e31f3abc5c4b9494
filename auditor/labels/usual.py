"""Answers that most kinds of labels share: of the list of suspects and of what is said with it."""

from __future__ import annotations

from auditor.catalog.records import Audit, Dataset
from auditor.ground.wording import plural
from auditor.kind import Kind, Suspects
from auditor.results import arrays, progress, statements
from auditor.review import drawing


class Usual(Kind):
    """Labels of which an audit guesses how many are wrong."""

    def suspects(
        self,
        dataset: Dataset,
        audit: Audit,
        *,
        top: int,
        max_fdr: float | None = None,
        split: str | None = None,
    ) -> Suspects:
        """Return the labels of least trust, or those that a promise covers."""
        del dataset
        return statements.suspects(audit, top=top, max_fdr=max_fdr, split=split)

    def summary(self, dataset: Dataset, audit: Audit) -> list[str]:
        """Return whom the audit heard, how many labels may be wrong, and the commands to go on with."""
        number, rate = audit.summary.num_label_issues, statements.noise_rate_now(audit)
        cut = f"{plural(number, 'label', 'are')} above the suggested cut." if number else ""
        steps = filter(None, (drawing.next_command(dataset.name), "auditor app"))
        said = [arrays.heard_in_words(audit), rate.sentence, cut or statements.no_suspects(audit)]
        return [*filter(None, said), f"Next: {', or '.join(steps)}"]

    def status(self, dataset: Dataset, audit: Audit) -> list[str]:
        """Return how many labels may be wrong, and whether going on is worth it."""
        return [progress.noise_rate(audit).sentence, progress.progress(dataset.id, audit.id).advice]
