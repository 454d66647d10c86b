"""Memory on its way out of the house and in again: one person's export, and what can be read back.

    layout.py   the names and limits of what we write, and strict JSON
    export.py   a history as JSON, Markdown or a folder of objects: pure but for `write_objects`
    tree.py     folders and zip files from outside, read with suspicion
    objects.py  records from outside, and a folder of objects as records
    entries.py  snapshots: a plain list of what holds, out and in
    load.py     recognises what a file or folder is, and reads it into an `Imported`
    take.py     which records an import adds to a history: `records_for`
    everybody.py  a whole store as one folder, and back

Exports are complete, private items included: they are for the person and the admin.
Loading checks everything and writes nothing; every objection is a `Refused` that names the file or entry.
Knows core and memory's files; nothing about Discord, prompts or the command line.
"""

from discoclaw.memory.exchange.entries import export_snapshot
from discoclaw.memory.exchange.everybody import (
    Everybody,
    is_everybody,
    load_everybody,
    take_texts,
    write_everybody,
)
from discoclaw.memory.exchange.export import (
    export_json,
    export_markdown,
    export_objects,
    write_objects,
)
from discoclaw.memory.exchange.layout import Content, Imported, Items, Records
from discoclaw.memory.exchange.load import load_bytes, load_file
from discoclaw.memory.exchange.take import Report, records_for

__all__ = [
    "Content",
    "Everybody",
    "Imported",
    "Items",
    "Records",
    "Report",
    "export_json",
    "export_markdown",
    "export_objects",
    "export_snapshot",
    "is_everybody",
    "load_bytes",
    "load_everybody",
    "load_file",
    "records_for",
    "take_texts",
    "write_everybody",
    "write_objects",
]
