"""HTTP beside Streamlit: pictures, pages of the queue, verdicts."""

__all__ = [
    "bench",
    "gate",
    "geometry",
    "masks",
    "packed",
    "pictures",
    "routes",
    "verify",
]
