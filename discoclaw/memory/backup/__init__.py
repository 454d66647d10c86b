"""Everything in the data folder and in its store as one file: the one format of whole stores.

    layout.py     what is in a backup and what its parts are called; values, checked
    writing.py    writes one while others use the store
    reading.py    reads one from an untrusted source, and verifies all of it
    uniting.py    adds what another store has to the one that is here (`memory import`)
    restoring.py  prepares what a backup holds beside the folder, and puts it in place
    swap.py       puts a prepared folder in place of the old one, also after a crash

A backup is a state that a crash could have left, so a start after a restore mends what it would mend after
a crash. Names and bytes are those of plain files, whatever the store, so a backup moves between stores:
a restore puts it in the place of what is there, an import adds it. One person's memory is exported by
`memory/exchange`. Independent of the command line, of Discord and of models. Blocking.
"""
