"""The catalog: tables and queries. The only room that knows SQL.

Import the query modules and call them by module, so that a call reads
``datasets.get(session, name="digits")``.
"""
