"""The port to a disk: plain files and SQLite, atomic writes, cursors, the folder's lock. Knows only core."""
