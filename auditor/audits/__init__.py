"""Audits: what to run and in which time, and the run of it in a process of its own, from the plan to the result."""

from auditor.audits.budgets import DEFAULT_BUDGET_S, OVERNIGHT_S, parse_budget
from auditor.audits.durations import EngineChoices, engine_choices, planned_seconds
from auditor.audits.further import Finetune
from auditor.audits.plan import (
    TRUNK,
    AuditOverview,
    EngineProgress,
    audit_overview,
    cancel_audit,
    check_seed,
    heads_of,
    newest_unfinished_audit,
    plan_audit,
    register_audit,
    start_audit,
    wait_for_audit,
)
from auditor.audits.usual_features import choose_features
from auditor.audits.worker import features_for, run_audit, run_on_classes, train_engines, work_on_audit

__all__ = [
    "DEFAULT_BUDGET_S",
    "OVERNIGHT_S",
    "TRUNK",
    "AuditOverview",
    "EngineChoices",
    "EngineProgress",
    "Finetune",
    "audit_overview",
    "cancel_audit",
    "check_seed",
    "choose_features",
    "engine_choices",
    "features_for",
    "heads_of",
    "newest_unfinished_audit",
    "parse_budget",
    "plan_audit",
    "planned_seconds",
    "register_audit",
    "run_audit",
    "run_on_classes",
    "start_audit",
    "train_engines",
    "wait_for_audit",
    "work_on_audit",
]
