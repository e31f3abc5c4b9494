"""HTTP beside Streamlit: pictures, pages of the queue, verdicts."""

__all__ = [
    "bench",
    "geometry",
    "pictures",
    "routes",
    "verify",
]
