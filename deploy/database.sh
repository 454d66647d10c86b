#!/bin/sh
# Creates the user and the database, with no more rights than the bot needs.
# DISCOCLAW_DB_PASSWORD is the password; PGHOST and others of psql's variables say which server.
set -eu
psql -v ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
  -v password="$DISCOCLAW_DB_PASSWORD" <<'SQL'
CREATE ROLE discoclaw LOGIN PASSWORD :'password' NOSUPERUSER NOCREATEDB NOCREATEROLE;
CREATE DATABASE discoclaw OWNER discoclaw ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE discoclaw FROM PUBLIC;
SQL
