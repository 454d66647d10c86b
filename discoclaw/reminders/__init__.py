"""Reminders: what people type as a time, which moment that is, and who is due next."""
