"""The tables of the papers, again, and what only they need."""
