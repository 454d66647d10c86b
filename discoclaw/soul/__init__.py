"""The bot's personality: the interview it comes from, what it consists of, where it shows.

Pure. Imports only core.
"""
