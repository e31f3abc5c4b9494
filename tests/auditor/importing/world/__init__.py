"""Image sets as people publish them, in small: how each is to be read, and whether it is."""
