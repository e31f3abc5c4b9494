"""HTTP beside Streamlit: pictures, pages of the queue, verdicts."""

__all__ = [
    "bench",
    "gate",
    "geometry",
    "pictures",
    "routes",
    "verify",
]
