"""HTTP beside Streamlit: pictures, pages of the queue, verdicts."""

from app.server.gate import Gate
from app.server.masks import GIVEN, OUTLINES, colour, colours_of, lit_picture, outlined_picture
from app.server.packed import Packed
from app.server.pictures import encoded_picture
from app.server.routes import ROUTES

__all__ = [
    "GIVEN",
    "OUTLINES",
    "ROUTES",
    "Gate",
    "Packed",
    "colour",
    "colours_of",
    "encoded_picture",
    "lit_picture",
    "outlined_picture",
]
