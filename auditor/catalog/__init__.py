"""The catalog: tables and queries. The only room that knows SQL."""

__all__ = [
    "audits",
    "datasets",
    "db",
    "draws",
    "jobs",
    "leases",
    "records",
    "reviews",
    "scores",
]
