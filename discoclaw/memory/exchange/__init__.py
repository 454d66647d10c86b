"""Exports, imports, backups, and the move between stores: memory as files that leave or come.

    files.py      opens folders, zip files and tar files from untrusted sources; strict JSON
    histories.py  verifies records, and reads histories: ledgers, lists, folders of objects, also of others
    load.py       recognises a file or folder about people, and reads it into an `Imported`
    take.py       the records that an import adds to a history: `records_for`
    archive.py    memory that comes as a whole, from a backup, relays or a file, and how it is loaded
    export.py     a history as JSON, Markdown, a snapshot, or a folder of objects
    backup.py     everything in the data folder and its store as one file, written and verified
    restore.py    a backup takes the place of what is here

Exports are complete, private items included: they are for the person and the admin. Names and bytes of a
backup are those of plain files, whatever the store, so it moves between stores. Reading checks everything and
writes nothing; every error is a `Refused` that names the file or entry. Independent of Discord, prompts,
models and the command line. Blocking, but for `archive.load`.
"""
