"""From values to what people look at: texts, graphs and pictures of a memory. Pure. Knows only core.

Texts read well in a terminal and in a Discord message alike; neither colour nor markup is added here.
"""
