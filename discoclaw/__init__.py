"""DiscoClaw: a Discord bot with a memory that its users can see and correct."""

__version__ = "0.1.0"
