"""HTTP beside Streamlit: pictures, pages of the queue, verdicts."""

from app.server.gate import Gate
from app.server.masks import CLASSES, GIVEN, colours_of, outlined_picture
from app.server.packed import Packed
from app.server.pictures import encoded_picture
from app.server.routes import ROUTES

__all__ = [
    "CLASSES",
    "GIVEN",
    "ROUTES",
    "Gate",
    "Packed",
    "colours_of",
    "encoded_picture",
    "outlined_picture",
]
