"""The catalog: tables and queries. The only room that knows SQL."""

__all__ = [
    "audits",
    "backups",
    "claims",
    "datasets",
    "db",
    "draws",
    "folders",
    "jobs",
    "leases",
    "reading",
    "records",
    "removal",
    "reviews",
    "scores",
]
