"""Export and import of memory: of one person.

    layout.py   file names, limits, strict JSON, and what loading returns
    export.py   a history as JSON, Markdown or a folder of objects: pure but for `write_objects`
    tree.py     folders and zip files from untrusted sources
    objects.py  verifies records, and reads a folder of objects
    entries.py  snapshots: the current memories as a plain list, written and read
    load.py     recognises a file or folder, and reads it into an `Imported`
    take.py     the records that an import adds to a history: `records_for`
    unmarked.py  what may have been said in private, as far as a file doesn't say

Exports are complete, private items included: they are for the person and the admin.
Loading checks everything and writes nothing; every error is a `Refused` that names the file or entry.
Independent of Discord, prompts and the command line.
"""

from discoclaw.memory.exchange.entries import export_snapshot
from discoclaw.memory.exchange.export import (
    export_json,
    export_markdown,
    export_objects,
    write_objects,
)
from discoclaw.memory.exchange.layout import Content, Imported, Items, Records
from discoclaw.memory.exchange.load import load_bytes, load_file
from discoclaw.memory.exchange.take import Report, records_for
from discoclaw.memory.exchange.unmarked import current_items

__all__ = [
    "Content",
    "Imported",
    "Items",
    "Records",
    "Report",
    "current_items",
    "export_json",
    "export_markdown",
    "export_objects",
    "export_snapshot",
    "load_bytes",
    "load_file",
    "records_for",
    "write_objects",
]
