"""Presents a memory to people: as text, as a graph, or as a picture. Pure. Imports only core.

Texts have to read well both in a terminal and in a Discord message, so they contain no colour and no markup.
"""
