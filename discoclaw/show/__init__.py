"""Presents a memory to people: as text, graph, picture, and as what commands answer. Imports only core.

Texts of a history have to read well in a terminal and in a code block, so they have no colour and no markup;
answers (`answer`) are in Discord's markup.
"""
