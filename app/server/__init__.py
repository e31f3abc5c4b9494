"""HTTP beside Streamlit: pictures, pages of the queue, verdicts."""

from app.server.gate import Gate
from app.server.masks import GIVEN, outlined_picture
from app.server.packed import Packed
from app.server.pictures import encoded_picture
from app.server.routes import ROUTES

__all__ = ["GIVEN", "ROUTES", "Gate", "Packed", "encoded_picture", "outlined_picture"]
