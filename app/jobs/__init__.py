"""Long work in processes of its own: started here, watched through small files."""

__all__ = [
    "apart",
    "background",
    "comparisons",
    "demo",
    "imports",
]
