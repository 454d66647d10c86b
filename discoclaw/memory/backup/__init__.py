"""Backup and restore: everything in the data folder and in its store, as one file.

    layout.py     what is in a backup and what its parts are called; values, checked
    writing.py    writes one while others use the store
    reading.py    reads one from an untrusted source, and verifies all of it
    restoring.py  prepares what a backup holds beside the folder, and puts it in place
    swap.py       puts a prepared folder in place of the old one, also after a crash

A backup is a state that a crash could have left, so a start after a restore mends what it would mend after
a crash. Names and bytes are those of plain files, whatever the store, so a backup moves between stores.
It is not an export (`memory/exchange`): that is readable, merges with what is there, and leaves out cursors,
the archive, the outbox and the key. Independent of the command line, of Discord and of models. Blocking.
"""
