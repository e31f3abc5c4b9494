"""Every layout that the catalog ever had, one revision a file, each made from the one before.

A revision has a number, the number before it, and ``upgrade``, which works on SQLite and PostgreSQL. It says all
that it needs in words of its own and never asks ``models``, which go on changing. A new one: a file here, its
number in ``HEAD``, and the tables changed in ``models``; a test compares the two.
"""

__all__ = ["HEAD"]

HEAD = "0005"
"""The layout that this version of the code reads and writes."""
