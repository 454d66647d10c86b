"""`/settings` and `/model`: owners and admins of a server see and change the live configuration."""
