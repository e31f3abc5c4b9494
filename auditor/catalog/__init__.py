"""The catalog: tables and queries. The only room that knows SQL."""

__all__ = [
    "audits",
    "backups",
    "datasets",
    "db",
    "draws",
    "folders",
    "jobs",
    "leases",
    "records",
    "reviews",
    "sample_leases",
    "scores",
]
