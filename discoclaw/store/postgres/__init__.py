"""The store in PostgreSQL, which several processes may share. The one package that knows psycopg."""
