"""A person's memory as something they can keep: JSON, a readable document, or a folder of objects.

Exports are complete, private items included. `exported` and what it calls are pure; `unpack_objects` writes
a folder. Independent of who asked.
"""

import io
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from discoclaw.core.errors import Refused, faulting
from discoclaw.core.event import Ref
from discoclaw.core.history import Branch, History
from discoclaw.core.item import KINDS, MANUAL, Item, durable_line
from discoclaw.core.text import collapse
from discoclaw.core.times import date_of, iso_ms
from discoclaw.memory.exchange.histories import (
    BRANCHES,
    COMMITS,
    EVENTS,
    HEAD,
    OBJECTS_FORMAT,
    REFS,
    SUMMARY,
    VERSION,
)
from discoclaw.memory.exchange.load import FORMAT
from discoclaw.store.files import make_folder, new_folder, opener, render_json, sync_folder

Form = Literal["json", "markdown", "objects", "snapshot"]


def exported(
    form: Form,
    history: History,
    subject: str,
    *,
    history_too: bool,
    now_ms: int,
    accessed: Mapping[str, int],
) -> bytes:
    """Return a history in one of the forms, a folder of objects as a zip file.

    `accessed` has when (ms) items were last used, by id.
    """
    if form == "objects":
        return export_objects(history)
    if form == "snapshot":
        return export_snapshot(history, accessed)
    make = export_json if form == "json" else export_markdown
    return make(history, subject, history_too=history_too, now_ms=now_ms)


# ---------------------------------------------------------------------- JSON


def export_json(history: History, subject: str, *, history_too: bool, now_ms: int) -> bytes:
    """Return one JSON document (UTF-8) with the memories of every branch.

    `history_too` adds every record, so that an import restores the identical history. `now_ms` is the
    time of the export, `subject` the person it is about.
    """
    branches = history.branches.all.values()
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "subject": subject,
        "exported_at": iso_ms(now_ms),
        "branches": [_branch(history, branch) for branch in branches],
        "memories": [
            _memory(branch.name, item)
            for branch in branches
            for item in history.view(branch.head).items.values()
        ],
    }
    if history_too:
        document["history"] = [record.to_json() for record in history.records]
    return render_json(document)


def _memory(branch: str, item: Item) -> dict[str, Any]:
    facets, body = item.facets, item.to_json()
    subject, predicate, object_ = facets.triple or ("user", item.kind, item.text)
    return {
        "id": item.id,
        "branch": branch,
        "subject": subject,
        "predicate": predicate,
        "object": object_,
        "scope": facets.scope,
        "confidence": facets.confidence,
        "timestamp": iso_ms(item.updated_at),
        **{name: value for name, value in body.items() if name != "id"},
        "sensitivity": facets.sensitivity,
        "author": facets.author,
        "key": facets.key,
        "category": facets.category,
        "links": sorted(facets.links),
    }


def _branch(history: History, branch: Branch) -> dict[str, Any]:
    return {
        "name": branch.name,
        "head": branch.head,
        "persona": branch.persona,
        "created_at": iso_ms(branch.created_at) if branch.created_at else None,
        "metadata": dict(branch.metadata),
        "current": branch.name == history.branches.current,
    }


# ---------------------------------------------------------------------- Markdown


def export_markdown(history: History, subject: str, *, history_too: bool, now_ms: int) -> bytes:
    """Return a Markdown document for reading, with each branch's items by kind.

    `history_too` adds every commit with its events, newest first. It cannot be imported.
    """
    lines = [f"# Memory of {subject}", "", f"Exported on {date_of(now_ms)}."]
    for branch in history.branches.all.values():
        items = list(history.view(branch.head).items.values())
        current = " (current)" if branch.name == history.branches.current else ""
        lines += ["", f"## {_plain(branch.name)}{current}"]
        if branch.persona:
            lines += ["", _plain(branch.persona)]
        for kind in KINDS:
            of_kind = [item for item in items if item.kind == kind]
            if of_kind:
                lines += ["", f"### {kind}", "", *(_item_line(item) for item in of_kind)]
        if not items:
            lines += ["", "Nothing is remembered."]
    if history_too:
        lines += ["", "## History", ""]
        lines += [] if history.records else ["There are no commits yet."]
        for record in reversed(history.records):
            if isinstance(record, Ref):
                what = f"{record.action} {_plain(record.branch)}".rstrip()
                lines.append(f"- {record.timestamp} {what}")
                continue
            about = f"{record.id} on {_plain(record.branch)}: {_plain(record.message) or '-'}"
            lines.append(f"- {record.timestamp} {about}")
            for event in record.events:
                said = _plain(f"{event.subject} {event.predicate}: {event.object}")
                secret = f"{event.sensitivity}; " if event.sensitivity != "normal" else ""
                why = f"; because {_plain(event.evidence)}" if event.evidence else ""
                lines.append(f"  - {event.event_type} {said} ({secret}source {_plain(event.source)}{why})")
    return ("\n".join(lines) + "\n").encode("utf-8")


_MARKUP = re.compile(r"[\\`*_\[\]<>|~&]")
_AT_START = re.compile(r"^(?:[#+=-]|\d+[.)])")


def _plain(text: str) -> str:
    """A text on one line, escaped so that nothing in it is markup."""
    text = _MARKUP.sub(lambda match: "\\" + match[0], " ".join(collapse(text).split()))
    return _AT_START.sub(lambda match: match[0][:-1] + "\\" + match[0][-1], text)


def _item_line(item: Item) -> str:
    facets = item.facets
    said = [
        *(["deprecated"] if not item.active else []),
        *([facets.sensitivity] if facets.sensitivity != "normal" else []),
        facets.author,
        f"updated {date_of(item.updated_at)}",
        f"source {_plain(str(item.source))}",
        *([f"tags {_plain(', '.join(item.tags))}"] if item.tags else []),
        f"id {_plain(item.id)}",
    ]
    return f"- {_plain(item.text)} ({'; '.join(said)})"


# ---------------------------------------------------------------------- snapshot


def export_snapshot(history: History, accessed: Mapping[str, int]) -> bytes:
    """Return a JSON list (UTF-8) of the entries. `accessed`: last uses (ms) by item id.

    `last_accessed` is left out if unknown, `key` is the item's id if it has none, and the kind is there if it
    is another one than "fact".
    """
    items = history.shown().active()
    names = {item.id: item.facets.key or item.id for item in items}
    entries = []
    for item in items:
        facets, used = item.facets, accessed.get(item.id, 0)
        entries.append(
            {
                "id": item.id,
                "key": names[item.id],
                "content": item.text,
                "category": facets.category,
                "timestamp": item.updated_at // 1000,
                **({"last_accessed": used // 1000} if used >= 1000 else {}),
                "session_id": "" if item.source == MANUAL else str(item.source),
                "links": sorted(names[one] for one in facets.links if one in names),
                **({"kind": item.kind} if item.kind != "fact" else {}),
                "sensitivity": facets.sensitivity,
            }
        )
    return render_json(entries)


# ---------------------------------------------------------------------- objects


def export_objects(history: History) -> bytes:
    """Return a zip of objects. Same history, same bytes.

    It has `events/<id>.json`, `commits/<id>.json` (which name their events by id), `branches.json`, `HEAD`,
    `MEMORY.md`, and `refs.json` with the history of the branches.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _object_files(history).items():
            info = zipfile.ZipInfo(name)  # dated 1980, so that the bytes depend on the history alone
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o600 << 16
            archive.writestr(info, content)
    return packed.getvalue()


def unpack_objects(packed: bytes, folder: Path) -> None:
    """Write what `export_objects` packed as a folder, completely or not at all.

    Raises Refused if the path exists, MemoryFault if the disk fails.
    """
    with zipfile.ZipFile(io.BytesIO(packed)) as archive, faulting(f"{folder} could not be written"):
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise Refused(f"{folder} is there already and no folder; name another one")
        if folder.is_dir() and any(folder.iterdir()):
            raise Refused(f"{folder} is not empty; name a new folder, or empty it first")
        with new_folder(folder.absolute()) as made:
            for part in ("", EVENTS, COMMITS):
                make_folder(made / part)
            for name in archive.namelist():
                with open(made / name, "xb", opener=opener) as file:
                    file.write(archive.read(name))
                    file.flush()
                    os.fsync(file.fileno())
            for part in (EVENTS, COMMITS, ""):
                sync_folder(made / part)


def _object_files(history: History) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    seals: dict[str, str] = {}
    for commit in history.commits.values():
        keys = []
        for event in commit.events:
            # Evidence, confidence and sensitivity are not part of the id. If events differ only in these, all
            # but the first also have the beginning of their hash in the name.
            key = event.id
            if seals.setdefault(key, event.hash) != event.hash:
                key = f"{event.id}-{event.hash[:16]}"
                seals[key] = event.hash
            files.setdefault(f"{EVENTS}/{key}.json", render_json(event.to_json()))
            keys.append(key)
        files[f"{COMMITS}/{commit.id}.json"] = render_json({**commit.to_json(), "events": keys})
    branches = history.branches
    refs = [record.to_json() for record in history.records if isinstance(record, Ref)]
    files[BRANCHES] = render_json({one.name: _branch(history, one) for one in branches.all.values()})
    files[HEAD] = f"{branches.current}\n".encode()
    # For people and older tools; never read back.
    lines = [durable_line(item) for item in history.shown().active()] or ["Nothing is remembered."]
    files[SUMMARY] = "\n".join(["# Memory", "", *lines, ""]).encode("utf-8")
    files[REFS] = render_json({"format": OBJECTS_FORMAT, "version": VERSION, "refs": refs})
    return files
