"""Every part that stores something about people follows the contract of `core/purge`: it is registered.

That an erasing reaches its files is tested in `tests/memory/test_erase.py` for every folder of a store.
"""

import asyncio
import importlib
import inspect
import pkgutil
from inspect import isawaitable, iscoroutine
from pathlib import Path
from typing import Any

from pydantic import SecretStr

import discoclaw
from discoclaw.app import App, build
from discoclaw.core.purge import Derived, Purge, Words
from discoclaw.search.archive import Archive
from discoclaw.settings import Settings
from discoclaw.settings_types import Listen

READ_ELSEWHERE = {
    "Answers": "it stores ids of messages, and of people for whom they were",
    "OpenThreads": "what threads are called is in Discord",
    "Refill": "what it has read again are the messages of summaries",
    "Archiving": "what waits for the archive is in RAM",
    "Embedding": "what waits for its vector is in RAM",
    "Transparency": "it stores ids of messages; what they show is in Discord",
    "CopiesAside": "files of no part are looked at by themselves",
}
"""Parts that remove what was taken back from something that another part lists, and why."""


def everything(folder: Path) -> App:
    """A bot with every part switched on."""
    on: dict[str, Any] = {
        "data_dir": folder / "data",
        "content_dir": folder / "content",
        "auto_save": "all",
        "response_cache": True,
        "receipts": True,
        "memory_channel": "1",
        "embedding_provider": "openai",
        "embedding_url": "http://127.0.0.1:1/v1",
        "embedding_key": SecretStr("sk-secret"),
        "nostr_relays": ("ws://127.0.0.1:1",),
        "nostr_key": SecretStr("11" * 32),
        "page": Listen("127.0.0.1", 0),
        "base_url": "http://127.0.0.1:1",
    }
    settings = Settings(_env_file=None, **on)
    settings.outbox_path.parent.mkdir(parents=True)
    settings.outbox_path.touch()  # something was mirrored before
    return build(settings)


def parts_there_are() -> set[type[Derived]]:
    """Every class of ours that stores something about people."""
    for module in pkgutil.walk_packages(discoclaw.__path__, "discoclaw."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, waiting = set(), [Derived]
    while waiting:
        one = waiting.pop()
        waiting += one.__subclasses__()
        ours = one.__module__.startswith("discoclaw.")
        ours &= not one.__module__.startswith("discoclaw.demo.")  # `demo/show` has it join by itself
        if ours and one is not Derived:
            found.add(one)
    return {_port(one) for one in found if not inspect.isabstract(one)}


def _port(part: type[Derived]) -> type[Derived]:
    """What a part stands for: there are several archives, of which a bot has one."""
    return Archive if issubclass(part, Archive) else part


def test_each_is_registered_under_a_name_of_its_own(tmp_path: Path) -> None:
    registered = list(everything(tmp_path).storage.memory.personal)
    assert parts_there_are() - {_port(type(part)) for part in registered} == set()
    names: dict[str, set[type[Derived]]] = {}
    for part in registered:
        names.setdefault(part.name, set()).add(type(part))
    assert [name for name, kinds in names.items() if len(kinds) > 1 or not name] == []


def test_each_that_removes_from_disk_what_was_taken_back_lists_what_it_stores(tmp_path: Path) -> None:
    taken = Purge("user-1", 1, words=Words(frozenset({"word"})), texts=("word",))
    silent, loop = set(), asyncio.new_event_loop()
    for part in everything(tmp_path).storage.memory.personal:
        work = part.purge(taken, "disk")
        if isawaitable(work):
            (work.close() if iscoroutine(work) else work.cancel())
            if type(part).audit is Derived.audit:
                silent.add(type(part).__name__)
    loop.close()
    assert silent <= READ_ELSEWHERE.keys()
