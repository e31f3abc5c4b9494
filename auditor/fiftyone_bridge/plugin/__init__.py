"""FiftyOne operators: decide on the selected samples with the same meaning as in our app.

FiftyOne loads this folder by itself, in the App's process; ``auditor fiftyone NAME open`` shows it where it is.
"""

from __future__ import annotations

from typing import Any

import fiftyone.operators as operators
from fiftyone.operators import types

from auditor.fiftyone_bridge import actions
from auditor.ground.errors import AuditorError
from auditor.ground.vocabulary import EXCLUDE, KEEP, RELABEL, UNDO


class _Decision(operators.Operator):
    """One action for the selected samples, or for the one that is open."""

    action = ""
    label = ""
    icon = ""

    @property
    def config(self) -> Any:
        """Return how the App lists it."""
        name = "take_suggestion" if self.action == RELABEL else self.action
        return operators.OperatorConfig(name=name, label=self.label, icon=self.icon)

    def resolve_placement(self, ctx: Any) -> Any:  # noqa: ARG002
        """A button above the grid."""
        button = types.Button(label=self.label, icon=self.icon, prompt=False)
        return types.Placement(types.Places.SAMPLES_GRID_ACTIONS, button)

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Decide, then show what was done."""
        selected = list(ctx.selected or ([ctx.current_sample] if ctx.current_sample else []))
        try:
            reviewer = actions.reviewer_of_app()
            text = actions.act(ctx.dataset, selected, self.action, reviewer=reviewer)
        except AuditorError as error:
            ctx.ops.notify(str(error), variant="error")
            return {"done": str(error)}
        ctx.ops.notify(text, variant="success")
        ctx.ops.clear_selected_samples()
        # reload_samples counts again and leaves the pictures that are there.
        ctx.ops.reload_dataset()
        return {"done": text}

    def resolve_output(self, ctx: Any) -> Any:  # noqa: ARG002
        """Nothing beyond the notice."""
        return None


class Keep(_Decision):
    """The given label is right."""

    action, label, icon = KEEP, "Keep the label", "check_circle"


class TakeSuggestion(_Decision):
    """The suggested label is right."""

    action, label, icon = RELABEL, "Take the suggestion", "auto_fix_high"


class Exclude(_Decision):
    """The sample does not belong in the dataset."""

    action, label, icon = EXCLUDE, "Exclude", "block"


class Undo(_Decision):
    """Take back what was decided on the selected samples; with none selected, the latest step."""

    action, label, icon = UNDO, "Undo the decision", "undo"


def register(plugin: Any) -> None:
    """Register the operators with FiftyOne."""
    for operator in (Keep, TakeSuggestion, Exclude, Undo):
        plugin.register(operator)
