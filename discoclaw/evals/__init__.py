"""Evals: how well a model learns from talk and keeps summaries, measured on made-up conversations.

    case, chain    what a file of cases says, and the check of it
    scene          a data folder of its own for each case, with the loops as the bot has them
    talk, updates  run one case or one chain, and return what became of it
    judge          compares that with what was expected
    meter          what the model was asked, and what it cost
    figures        the figures, their gates, and which were missed
    report         both as text and as JSON

Only the model is outside. Nothing is written into the user's data folder.
"""
