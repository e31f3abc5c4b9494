"""FiftyOne: audits are pushed there, decisions are brought back, its App is opened on them."""

from auditor.fiftyone_bridge.own_features import add_own_features
from auditor.fiftyone_bridge.sync import (
    Pulled,
    Pushed,
    open_pushed,
    prepare_app,
    pull_decisions,
    push_audit,
    serve_app,
)

__all__ = [
    "Pulled",
    "Pushed",
    "add_own_features",
    "open_pushed",
    "prepare_app",
    "pull_decisions",
    "push_audit",
    "serve_app",
]
