"""Progress for whoever calls from Python: a bar in a terminal or a notebook, silence elsewhere or on request."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from auditor.ground.progress import OnProgress, Progress
from auditor.ground.wording import duration

LAYOUT = "{percentage:3.0f} % {bar} {desc}"


@contextmanager
def watching(progress: bool | OnProgress) -> Iterator[OnProgress | None]:
    """Yield what to tell the progress to.

    ``True`` shows a bar in a terminal or a notebook, and nothing where standard error is a file; ``False`` shows
    nothing; a function is called itself.
    """
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress or not (_is_notebook() or sys.stderr.isatty()):
        yield None
        return
    with warnings.catch_warnings():  # a notebook without ipywidgets gets the bar of a terminal
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    bar = None

    def show(at: Progress) -> None:
        nonlocal bar
        if bar is None:  # an immediate refusal stays one line
            bar = tqdm(total=1.0, bar_format=LAYOUT, leave=True)
        share = at.done / at.total if at.total else 0.0
        left = "" if at.seconds_left is None else f", about {duration(at.seconds_left)} left"
        bar.n = min(max(share, 0.0), 1.0)
        bar.set_description_str(f"{at.stage}{left}", refresh=True)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()


def _is_notebook() -> bool:
    """Return whether a kernel of Jupyter runs this process."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
