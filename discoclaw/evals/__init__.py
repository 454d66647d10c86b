"""Evals: how well a model learns from talk and keeps summaries, measured on made-up conversations.

    casefile  what a file of cases says, and the check of it
    talk      runs one case in a data folder of its own, with the loops as the bot has them; counts calls
    judge     runs one chain, and compares what became of either with what was expected
    run       runs all of them
    report    the figures, their gates, and which were missed, as text and as JSON

Only the model is outside. Nothing is written into the user's data folder.
"""
