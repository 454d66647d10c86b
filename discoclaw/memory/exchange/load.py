"""Recognises what a file or folder of memories is, and reads it: our exports, and those of other programs.

    memories.json   {format, version, subject, branches, memories}, or a list of `history` records
    of others       {memories}: triples without a kind or a source
    snapshot        a list of {id, key, content, category, timestamp, last_accessed, session_id, links}, or an
                    object with such "entries": the active memories of a branch. Times are in seconds, `links`
                    are keys of other entries, `session_id` is where it was learned
                    ("discord:<channel>/<message>"). Vectors are ignored: they are computed again
    objects         a folder or zip of events and commits (`histories`); a ledger; a durable file
    a data folder   with `durable/`, `ledger/` and `rolling/`, also of the TypeScript bot

Everything is checked here, before anything is written. A file that cannot be trusted as a whole is Refused;
single bad memories are rejected by name. Blocking. Independent of the memory that they are imported into.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeAlias, get_args

from discoclaw.core.decay import CONVERSATION, CORE, KNOWLEDGE
from discoclaw.core.errors import MemoryFault, NewerSchema, Refused
from discoclaw.core.item import (
    MANUAL,
    Author,
    Facets,
    Item,
    Source,
    check_text,
    item_from_json,
    new_item,
    tidy_tags,
    triple_text,
)
from discoclaw.core.privacy import said_in_the_open
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import user_of
from discoclaw.core.text import collapse, scrub
from discoclaw.core.times import ms_of_iso, valid_ms
from discoclaw.memory.exchange.files import Folder, Tree, kind_of, opened, parse_json, read_whole
from discoclaw.memory.exchange.histories import (
    COMMITS,
    EVENTS,
    REFS,
    Records,
    check_version,
    is_objects,
    read_ledger,
    read_list,
    read_objects,
    records_of,
    sensitivity_of,
)
from discoclaw.memory.subjects import durable_file

FORMAT = "discoclaw-memory"
MOST_ITEMS = 100_000
_KNOWN = "a memories.json, a snapshot, a folder or zip of objects, a durable file, a data folder or nanobot's"
_FOLDERS = (EVENTS, COMMITS, "durable", "rolling", "ledger")
_ABOVE = ("", "memory/", "data/memory/", "workspace/memory/")
_SESSION = re.compile(r"[A-Za-z0-9:_-]{1,200}")
_USER = re.compile(r"[A-Za-z0-9_-]{1,58}")
_LONGEST_SUMMARY = 20_000
_LONGEST_WORD = 200
NO_SOURCES = "the file has no kinds and no sources, so each memory comes in as a fact that was stated"


@dataclass(frozen=True, slots=True)
class Items:
    """Memories without a history. `rejected` has a sentence for each entry that cannot be imported.

    `redacted` counts the entries from which a secret was removed. A time of 0 means that none was given.
    `skips_known`: entries that are known already, by id, key or text, are skipped without a question.
    `notes` are sentences about what is missing in the file. `unmarked` are the ids of items of which the file
    says neither how private they are nor that they were said in the open. `accessed` has when (ms) items were
    last used, by id, as far as the file says.
    """

    items: tuple[Item, ...]
    rejected: tuple[str, ...] = ()
    redacted: int = 0
    skips_known: bool = False
    notes: tuple[str, ...] = ()
    unmarked: frozenset[str] = frozenset()
    accessed: Mapping[str, int] = field(default_factory=dict)


Content: TypeAlias = Items | Records


@dataclass(frozen=True, slots=True)
class Imported:
    """The content of a file or folder. `what` describes it in a few words.

    `subjects` maps Discord user ids to memories; the id is None if the file doesn't say who they are about.
    `summaries` are rolling summaries of the TypeScript bot, by their file names without ".json", which are
    escaped session keys.
    """

    what: str
    subjects: Mapping[str | None, Content]
    summaries: Mapping[str, str] = field(default_factory=dict)

    def content(self, user_id: str | None = None) -> Content:
        """The content about a person, by Discord user id, or the only content there is.

        A file that doesn't say who it is about counts as about the person who imports it. Raises Refused if
        it is about somebody else, or about several people and none was named.
        """
        if user_id is not None and user_id in self.subjects:
            return self.subjects[user_id]
        if None in self.subjects:
            return self.subjects[None]
        if user_id is None and len(self.subjects) == 1:
            return next(iter(self.subjects.values()))
        people = ", ".join(sorted(str(user) for user in self.subjects)[:10])
        if not people:
            raise Refused(f"{self.what} holds memories of nobody")
        if user_id is None:
            raise Refused(f"{self.what} has memories of several people; name one of them: {people}")
        raise Refused(f"{self.what} holds memories of {people}, and none of {user_id}")


def load_file(path: Path, redactor: Redactor = PLAIN) -> Imported:
    """Return the content of a file or folder. Secrets are removed, but not from a history: it cannot change.

    Raises Refused, naming what is wrong, and MemoryFault.
    """
    try:
        if path.is_dir():
            return _of_tree(Folder(path, {*_FOLDERS, "branches", "memory", "data", "workspace"}), redactor)
        content = read_whole(path, path.name)
    except FileNotFoundError as error:
        raise Refused(f"there is no file or folder {path}; look at the name") from error
    except OSError as error:
        raise MemoryFault(f"{path} cannot be read: {error}") from error
    return load_bytes(path.name, content, redactor)


def load_bytes(name: str, content: bytes, redactor: Redactor = PLAIN) -> Imported:
    """Return the content of a file given by its name and bytes, like `load_file`. Raises Refused."""
    if (packed := opened(name, content)) is not None:
        return _of_tree(packed, redactor)
    if name.endswith(".jsonl"):
        return Imported(f"the ledger {name}", {user_of(PurePosixPath(name).stem): read_ledger(name, content)})
    if (kind := kind_of(content)) not in ("", "empty", "JSON"):
        raise Refused(f"{name} is {kind}, and can't be imported here; import {_KNOWN}")
    value = parse_json(name, content)
    entries = value.get("entries") if isinstance(value, Mapping) else value or None
    if isinstance(entries, list):
        return Imported(f"the snapshot {name}", {None: _snapshot(name, entries, redactor)})
    if isinstance(value, Mapping) and ("format" in value or "memories" in value):
        return _memories_json(name, value, redactor)
    if isinstance(value, Mapping) and "items" in value:
        stem = PurePosixPath(name).stem
        user = stem if stem.isascii() and stem.isdigit() else None
        return Imported(f"the durable file {name}", {user: _durable(name, content, value, redactor)})
    raise Refused(f"{name} cannot be imported; import {_KNOWN}")


# ---------------------------------------------------------------------- folders and zip files


def _of_tree(tree: Tree, redactor: Redactor) -> Imported:
    base = _base(tree)
    names = {name.removeprefix(base) for name in tree.names if name.startswith(base)}
    if is_objects(names):
        return Imported(f"the history in {tree.name}", {None: read_objects(tree, base)})
    subjects: dict[str | None, Content] = {}
    summaries: dict[str, str] = {}
    for name in sorted(names):
        path, said, full = PurePosixPath(name), f"{tree.name}: {base}{name}", base + name
        if path.name.startswith("."):
            continue
        if str(path.parent) == "durable" and path.suffix == ".json":
            content = tree.read(full)
            user = _user(said, path.stem)
            subjects.setdefault(user, _durable(said, content, parse_json(said, content), redactor))
        elif str(path.parent) == "ledger" and path.suffix == ".jsonl":
            # A ledger knows more than the durable file, which is a picture of it.
            if (of := user_of(path.stem)) is not None:
                subjects[_user(said, of)] = read_ledger(said, tree.read(full))
        elif str(path.parent) == "rolling" and path.suffix == ".json":
            if not _SESSION.fullmatch(path.stem):
                raise Refused(f"{said} is not named after a conversation; move it out of the folder")
            summaries[path.stem] = read_summary(said, tree.read(full), redactor)
    if not subjects and not summaries:
        raise Refused(f"{tree.name} holds nothing to import; import {_KNOWN}")
    return Imported(f"the data folder {tree.name}", subjects, summaries)


def _base(tree: Tree) -> str:
    """The folder in a tree that has the known folders and files: the top, or its only folder."""
    tops = {name.partition("/")[0] for name in tree.names}
    roots = ["", *(f"{top}/" for top in tops if len(tops) == 1 and top not in _FOLDERS)]
    for root in roots:
        for above in _ABOVE:
            base = root + above
            marks = tuple(f"{base}{folder}/" for folder in _FOLDERS)
            if f"{base}{REFS}" in tree.names or any(name.startswith(marks) for name in tree.names):
                return base
    raise Refused(f"{tree.name} holds nothing to import; import {_KNOWN}")


def _user(name: str, user: str) -> str:
    if not _USER.fullmatch(user):
        raise Refused(f"{name} is not named after a person; rename it to their Discord id")
    return user


def read_summary(name: str, content: bytes, redactor: Redactor = PLAIN) -> str:
    """The text of a rolling summary. Raises Refused."""
    value = parse_json(name, content)
    text = value.get("summary") if isinstance(value, Mapping) else None
    if not isinstance(text, str) or len(text) > _LONGEST_SUMMARY:
        raise Refused(f"{name} is not a rolling summary; correct it, or move it out of the folder")
    return redactor.clean(scrub(text))


# ---------------------------------------------------------------------- memories.json


def _memories_json(name: str, value: Mapping[str, Any], redactor: Redactor) -> Imported:
    memories = value.get("memories")
    triples = "format" not in value and isinstance(memories, list) and any(map(_is_triple, memories))
    user = None
    if not triples:
        if value.get("format") != FORMAT:
            raise Refused(f'{name} has another "format" than {FORMAT!r}; export it with discoclaw')
        check_version(name, value.get("version"))
        subject = value.get("subject")
        if subject is not None and not isinstance(subject, str):
            raise Refused(f'{name} has a "subject" that is not a text; export it again')
        user = _user(name, told) if (told := user_of(subject or "")) is not None else None
        if "history" in value:
            if not isinstance(value["history"], list):
                raise Refused(f'{name} has a "history" that is not a list; export it again')
            records = records_of(read_list(name, value["history"], "history record"))
            return Imported(f"the history in {name}", {user: records})
        if not isinstance(memories, list):
            raise Refused(f'{name} has no list of "memories"; export it again')
    branches = value.get("branches", [])
    if not isinstance(branches, list) or not all(isinstance(one, Mapping) for one in branches):
        raise Refused(f'{name} has "branches" that are not a list of objects; export it again')
    current = next((str(one.get("name")) for one in branches if one.get("current") is True), None)
    assert memories is not None
    entries = list(memories)
    for number, one in enumerate(memories if triples else ()):
        if _is_triple(one) and "text" not in one:  # of another program, which gives no kind and no source
            text = triple_text(one["subject"], one["predicate"], one["object"])
            entries[number] = {"kind": "fact", **{key: each for key, each in one.items() if key != "source"}}
            entries[number]["text"] = text
    mine: dict[str, Item] = {}  # where branches differ about an item, the person's current one decides
    others: dict[str, Item] = {}
    unmarked: set[str] = set()
    found, rejected, redacted = _read(name, entries, _MEMORY, redactor)
    for entry, item in found:
        (mine if entry.get("branch", "") == current else others).setdefault(item.id, item)
        if entry.get("sensitivity") is None and not said_in_the_open(entry.get("source")):
            unmarked.add(item.id)
    items = Items(tuple({**others, **mine}.values()), tuple(rejected), redacted, unmarked=frozenset(unmarked))
    return Imported(
        f"the memories in {name}", {user: replace(items, notes=(NO_SOURCES,)) if triples else items}
    )


def _is_triple(entry: Any) -> bool:
    return isinstance(entry, dict) and all(
        isinstance(entry.get(name), str) for name in ("subject", "predicate", "object")
    )


def _memory(entry: Mapping[str, Any]) -> Item:
    author, confidence = entry.get("author", "stated"), entry.get("confidence", 1.0)
    if author not in get_args(Author):
        raise Refused(f'"author" is "stated" or "inferred", not {author[:60]!r}')
    if not 0 <= confidence <= 1:
        raise Refused(f'"confidence" is between 0 and 1, not {confidence}')
    facets = Facets(
        author=author,
        sensitivity=sensitivity_of(entry.get("sensitivity", "normal")),
        scope=_word("scope", entry.get("scope", "permanent")),
        confidence=confidence,
        key=_word("key", entry.get("key")),
        category=_word("category", entry.get("category")) or Facets().category,
        links=frozenset(entry.get("links", ())),
    )
    given = [entry.get(name) for name in ("subject", "predicate", "object")]
    if given != ["user", entry.get("kind"), entry.get("text")] and all(given):  # it was stored as a triple
        subject, predicate, object_ = (check_text(part) for part in given if part is not None)
        facets = replace(facets, triple=(subject, predicate, object_))
    timestamp = entry.get("timestamp")
    try:
        when = ms_of_iso(timestamp) if timestamp is not None else 0
    except ValueError as error:
        raise Refused(f'"timestamp" is not a time: {timestamp!r:.60}') from error
    return item_from_json(entry, now_ms=when if valid_ms(when) else 0, facets=facets)


def _word(name: str, value: str | None) -> str | None:
    tidy = collapse(scrub(value)) if value is not None else None
    if tidy is not None and len(tidy) > _LONGEST_WORD:
        raise Refused(f'"{name}" has at most {_LONGEST_WORD} characters')
    return tidy


# ---------------------------------------------------------------------- snapshots

_CATEGORIES = (CORE, KNOWLEDGE, CONVERSATION)
_MILLISECONDS = 10**11
"""A time beyond this is in milliseconds: in seconds it would be in the year 5138."""
_SAID_IN = re.compile(r"discord:([0-9A-Za-z_-]{1,40})/([0-9A-Za-z_-]{1,40})")


def _snapshot(name: str, entries: list[Any], redactor: Redactor) -> Items:
    found, rejected, redacted = _read(name, entries, _ENTRY, redactor)
    ids: dict[str, str] = {}
    for entry, item in found:
        ids.setdefault(_text(entry, "key") or item.id, item.id)

    def linked(item: Item) -> Item:
        """The item with its links as ids; entries name them by key."""
        links = frozenset(ids.get(one, one) for one in item.facets.links)
        return replace(item, facets=replace(item.facets, links=links))

    return Items(
        tuple(linked(item) for _, item in found),
        tuple(rejected),
        redacted,
        skips_known=True,
        unmarked=frozenset(item.id for entry, item in found if not _text(entry, "sensitivity")),
        accessed={item.id: _ms(entry.get("last_accessed", 0)) for entry, item in found},
    )


def _entry(entry: Mapping[str, Any]) -> Item:
    """An entry as an item. It doesn't say who stated it, so it counts as inferred."""
    category, where = _text(entry, "category").lower(), _SAID_IN.fullmatch(_text(entry, "session_id"))
    item = new_item(
        _text(entry, "kind") or "fact",
        entry["content"],
        source=Source("discord", *where.groups()) if where is not None else MANUAL,
        now_ms=_ms(entry.get("timestamp", 0)),
        facets=Facets(category=category if category in _CATEGORIES else KNOWLEDGE),
    )
    given, key = _text(entry, "id") or item.id, _text(entry, "key")
    if max(len(given), len(key)) > _LONGEST_WORD:
        raise Refused(f"its id or key is longer than {_LONGEST_WORD} characters")
    facets = replace(
        item.facets,
        key=key if key not in ("", given) else None,
        links=frozenset(collapse(scrub(one)) for one in entry.get("links", ())),
        sensitivity=sensitivity_of(_text(entry, "sensitivity") or "normal"),
    )
    return replace(item, id=given, facets=facets)


def _text(entry: Mapping[str, Any], name: str) -> str:
    """A text of an entry, on one line; "" if it is missing."""
    return collapse(scrub(entry.get(name) or ""))


def _ms(time: float) -> int:
    """A time of an entry in ms; 0 if it is missing."""
    when = int(time if time >= _MILLISECONDS else time * 1000)
    return when if valid_ms(when) else 0


# ---------------------------------------------------------------------- one by one


class _Form(NamedTuple):
    """One of the two forms of a list of memories: what they are called, the types of what one has, what is
    done about a wrong one, and how an item is made of it."""

    one: str
    types: Mapping[str, tuple[type, ...]]
    way: str
    item: Callable[[Mapping[str, Any]], Item]


_MEMORY = _Form(
    "memory",
    {
        **dict.fromkeys(("id", "branch", "subject", "predicate", "object", "timestamp"), (str,)),
        **dict.fromkeys(("status", "sensitivity", "author", "category"), (str,)),
        **dict.fromkeys(("scope", "key"), (str, type(None))),
        **dict.fromkeys(("createdAt", "updatedAt"), (int,)),
        **dict.fromkeys(("tags", "links"), (list,)),
        "confidence": (int, float),
        "source": (dict,),
    },
    "correct it or leave it out",
    _memory,
)
_ENTRY = _Form(
    "entry",
    {
        **dict.fromkeys(("id", "key", "category", "session_id", "kind", "sensitivity"), (str, type(None))),
        **dict.fromkeys(("timestamp", "last_accessed"), (int, float)),
        "links": (list,),
    },
    "nothing is imported, correct it or leave it out",
    _entry,
)


def _read(
    name: str, entries: list[Any], form: _Form, redactor: Redactor
) -> tuple[list[tuple[Mapping[str, Any], Item]], list[str], int]:
    """The items in a list, each with its entry, the rejected ones, and how many were redacted.

    Raises Refused if an entry doesn't have the shape we write: other things may be wrong, too.
    """
    _check_count(name, len(entries))
    for number, entry in enumerate(entries, start=1):
        where, way = f"{name}, {form.one} {number}", form.way
        if not isinstance(entry, dict):
            raise Refused(f"{where} is not a JSON object; {way}")
        if form is _ENTRY and not isinstance(entry.get("content"), str):
            raise Refused(f'{where} has no text as "content"; {way}')
        for field_, types in form.types.items():
            given = entry.get(field_)
            wrong = isinstance(given, bool) or not isinstance(given, types)
            if field_ in entry and (wrong or (isinstance(given, float) and not math.isfinite(given))):
                raise Refused(f"{where} has a wrong type of {field_!r}; {way}")
        for field_ in ("tags", "links"):
            if not all(isinstance(one, str) for one in entry.get(field_, ())):
                raise Refused(f"{where} has {field_!r} that are not texts; {way.replace(' it', ' them')}")
    found: list[tuple[Mapping[str, Any], Item]] = []
    seen: set[tuple[str, str]] = set()
    rejected: list[str] = []
    redacted = 0
    for number, entry in enumerate(entries, start=1):
        text = entry.get("text")
        said = f" (“{redactor.clean(collapse(scrub(text)))[:60]}”)" if isinstance(text, str) else ""
        where = f"{name}, {form.one} {number}{said}"
        try:
            item, clean = _redacted(form.item(entry), redactor)
        except Refused as refusal:
            rejected.append(f"{where}: {refusal}")
            continue
        place = (entry.get("branch", ""), item.id)
        if form is _MEMORY and place in seen:
            rejected.append(f"{where}: its id {item.id} is there twice")
            continue
        seen.add(place)
        redacted += not clean
        found.append((entry, item))
    return found, rejected, redacted


def _check_count(name: str, count: int) -> None:
    if count > MOST_ITEMS:
        raise Refused(
            f"{name} holds {count:,} memories, and {MOST_ITEMS:,} are the most; import less at once"
        )


def _durable(name: str, content: bytes, value: Any, redactor: Redactor) -> Items:
    if isinstance(value, Mapping) and isinstance(value.get("items"), list):
        _check_count(name, len(value["items"]))
    try:
        file = durable_file.parse(content, now_ms=0)
    except NewerSchema as error:
        raise Refused(f"{name} is of a newer version ({error}); import it with a newer discoclaw") from error
    except Refused as error:
        raise Refused(f"{name} is not a durable file: {error}; correct it, or move it away") from error
    items: list[Item] = []
    rejected, redacted = [f"{name}, {why}" for why in file.rejected], 0
    for one in file.items:
        try:
            item, clean = _redacted(one, redactor)
        except Refused as refusal:
            rejected.append(f"{name}, item {one.id[:_LONGEST_WORD]}: {refusal}")
            continue
        redacted += not clean
        items.append(item)
    return Items(tuple(items), tuple(rejected), redacted, unmarked=file.unmarked)


def _redacted(item: Item, redactor: Redactor) -> tuple[Item, bool]:
    """The item without secrets, and whether there were none. Raises Refused if nothing valid is left."""
    if len(item.id) > _LONGEST_WORD:
        raise Refused(f"its id is longer than {_LONGEST_WORD} characters")
    facets, clean = item.facets, redactor.clean
    beside = "\n".join((facets.scope or "", facets.key or "", facets.category))
    if clean(beside) != beside:
        raise Refused("its scope, key or category looks like a secret key")
    words = "\n".join((item.text, *item.tags, *(facets.triple or ())))
    if clean(words) == words:  # nearly always, and far sooner than one by one
        return item, True
    text, tags = check_text(clean(item.text)), tidy_tags(list(map(clean, item.tags)))
    return replace(item, text=text, tags=tags, facets=replace(facets, triple=None)), False
