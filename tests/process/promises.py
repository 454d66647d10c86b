"""What the bot owes to the people of a fleet, and whether it gave it.

    answered   each question and command once: with an answer, or a sentence why not
    in order   the answers of a conversation, as its questions were
    kept       each memory whose keeping was confirmed is in its person's ledger once; a ledger is one line
    erased     no word of somebody who was erased is in the store, in a data folder, or in a later prompt
    opted out  nothing is stored of what somebody says after they opted out

Questions about the store are asked of PostgreSQL itself, and not of the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from tests.process.house import is_talk, message_of
from tests.servers.discord_server import Message, User

if TYPE_CHECKING:
    from tests.process.fleet import Fleet

TOKEN = re.compile(r"\bzq[0-9]+x\b")
TOKEN_BYTES = re.compile(TOKEN.pattern.encode())
KEPT = re.compile(r"Remembered: I keep (zq[0-9]+x)")
SLOW = "My disk is slow to answer"
ERASED, OPTED_OUT = "I erased everything", "Done. I won't learn anything about you"
ERASING, LEFT = "I'm erasing everything", "couldn't be removed yet"
ANSWERED_S = 60.0
FINISHED_S = 60.0
"""How long an erasing may take that was said to take longer: it is tried again each half minute."""
CALM_S = 20.0
"""How long background work may take to store or drop what a check looks for."""


class Broken(AssertionError):
    """Promises that were not kept, one a line."""


class Promises:
    """The promises of one fleet. `asked` lists what has to be answered."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.asked: list[Message] = []
        self.counts: Counter[str] = Counter()
        self._erased: dict[str, int] = {}  # a word -> how many requests the model had had by then
        self._out: dict[int, int] = {}  # user id -> the place, in all changes, of the answer
        self._erasing: dict[str, float] = {}  # a word -> by when it has to be gone
        self._unsure: set[str] = set()
        self._out_before: set[str] = set()
        self._checked = 0  # of `asked`: those before were answered once when that was last looked at

    # --- what is promised ---

    def said_by(self, person: User) -> set[str]:
        """The words that somebody has said so far, and that nobody else says."""
        return {word for one in self.asked if one.author is person for word in TOKEN.findall(one.content)}

    async def erased(self, words: set[str], answer: Message) -> None:
        """Somebody asked to be erased, of whom these are the words. If that is done, they are gone."""
        if ERASING in answer.content or LEFT in answer.content:
            self.counts["erasings that took longer"] += 1
            self._unsure |= words
            self._erasing |= dict.fromkeys(words, time.monotonic() + FINISHED_S)
            return
        if ERASED not in answer.content:
            self.counts["erasings refused"] += 1
            self._unsure |= words  # the answer may be that nobody knows whether it was done
            return
        self.counts["erasings"] += 1
        requests = len(self._fleet.model.requests)
        self._erased |= {word: self._erased.get(word, requests) for word in words}
        left: list[str] = []
        with contextlib.suppress(psycopg.OperationalError):  # away: it is looked at in the end
            left = await asyncio.to_thread(self._left)
        if left:
            raise Broken("\n".join(f"when it was said to be erased: {one}" for one in left))

    def opted_out(self, person: User, answer: Message) -> None:
        if OPTED_OUT in answer.content:
            self.counts["opt-outs"] += 1
            self._out[person.id] = answer.created

    def opts_in(self, person: User) -> None:
        """They ask to opt in again: from now on they may be remembered."""
        self._out_before |= self._said_while_out()
        self._out.pop(person.id, None)

    # --- whether it is kept ---

    async def kept(self, patience_s: float = ANSWERED_S) -> None:
        """Wait until everybody is answered. Raises Broken unless every promise was kept."""
        open_now = await self.answered(patience_s=patience_s)
        faults = [*open_now, *self._twice(), *self._out_of_order()]
        self._checked = len(self.asked)
        # What loops still write or drop behind the answers is looked at until it is right.
        faults += [*await _empty(lambda: asyncio.to_thread(self._stored), CALM_S), *self._prompted()]
        if faults:
            raise Broken("\n".join(faults))

    async def answered(self, person: User | None = None, patience_s: float = ANSWERED_S) -> list[str]:
        """Wait until everybody is answered, or one person. Returns what is still open after a while."""

        async def look() -> list[str]:
            return [*self._unanswered(person)]

        return await _empty(look, patience_s)

    async def learned(self, said: Message) -> None:
        """Wait until what somebody said they like is in their ledger. Raises Broken."""
        liked = f"User likes {TOKEN.findall(said.content)[0]}"

        async def look() -> list[str]:
            lines = (await asyncio.to_thread(self._ledgers)).get(_ledger(said.author), [])
            return [] if any(_adds(line, liked) for line in lines) else [f"not learned: {liked}"]

        if faults := await _empty(look, CALM_S):
            raise Broken(*faults)

    def replies(self, message: Message) -> list[Message]:
        """The bot's finished replies to a message."""
        said = self._fleet.discord.bot_messages(message.channel)
        return [one for one in said if one.reply_to is message and not is_under_way(one)]

    def _unanswered(self, person: User | None) -> Iterator[str]:
        """Neither answered, nor together with a later message of the same person."""
        for number, one in enumerate(self.asked[self._checked :], self._checked):
            if person in (None, one.author) and not self._is_answered(one, number):
                yield f"not answered: {_shown(one)}"

    def _is_answered(self, message: Message, number: int) -> bool:
        if self.replies(message):
            return True
        if message.content.startswith("!"):
            return False
        later = (
            one
            for one in self.asked[number + 1 :]
            if one.channel is message.channel and one.author is message.author
        )
        if not any(self.replies(one) for one in later):
            return False
        word = TOKEN.findall(message.content)[-1]
        return any(word in message_of(one) for one in self._fleet.model.requests if is_talk(one))

    def _twice(self) -> Iterator[str]:
        for one in self.asked:
            said = self._fleet.discord.bot_messages(one.channel)
            found = [reply for reply in said if reply.reply_to is one and not is_notice(reply)]
            if len(found) > 1:
                texts = [(reply.content, reply.nonce) for reply in found]
                yield f"answered {len(found)} times: {_shown(one)}: {texts}"
            for reply in found:
                self._counted(one, reply.content)

    def _counted(self, message: Message, text: str) -> None:
        if self.asked.index(message) >= self._checked:
            self.counts["answers"] += 1
            if text != "ok" and not message.content.startswith("!"):
                self.counts["other than ok"] += 1

    def _out_of_order(self) -> Iterator[str]:
        """Answers of one conversation that overtook each other.

        Commands go on beside the talk. While one hangs, what its person says next waits for it, and nobody
        else does (`session/desk`).
        """
        for channel in {one.channel for one in self.asked}:
            said = [one for one in self._fleet.discord.bot_messages(channel) if one.reply_to]
            commands = [one for one in said if one.reply_to.content.startswith("!")]
            talk = [one for one in said if not one.reply_to.content.startswith("!")]
            for first, second in itertools.combinations(talk, 2):
                if first.reply_to.id > second.reply_to.id and not _waited(second, first, commands):
                    answers = "\n".join(f"{one.created} {_shown(one.reply_to)}" for one in said)
                    yield f"out of order in {channel.name}, as they were answered:\n{answers}"
                    break

    # --- in the store ---

    def _stored(self) -> list[str]:
        """What is wrong in the store and in the data folders."""
        return [*self._lost(), *self._left()]

    def _lost(self) -> Iterator[str]:
        """Memories that were confirmed and are not there once, and ledgers that are not one line."""
        ledgers = self._ledgers()
        for name, lines in ledgers.items():
            yield from (f"{name}: {fault}" for fault in not_one_line(lines))
        for one in self.asked:
            if not one.content.startswith("!memory remember"):
                continue
            word = TOKEN.findall(one.content)[0]
            if word in self._erased or word in self._unsure:
                continue
            there = sum(_adds(line, f"I keep {word}") for line in ledgers.get(_ledger(one.author), ()))
            confirmed = any(word in KEPT.findall(reply.content) for reply in self.replies(one))
            if there > 1 or (confirmed and there == 0):
                yield f"{word} of {one.author.name} was confirmed, and is in the ledger {there} times"
                yield from self._talk_of(one.author)

    def _talk_of(self, person: User) -> Iterator[str]:
        """What somebody said and what they were answered, with their places among all changes."""
        for one in self.asked:
            if one.author is person:
                answers = [(reply.created, reply.content[:80]) for reply in self.replies(one)]
                yield f"  {one.created} in {one.channel.name}: {one.content!r}: {answers}"

    def _ledgers(self) -> dict[str, list[dict[str, Any]]]:
        """The lines of each ledger, in order."""
        query = """SELECT name, line FROM logs JOIN lines ON lines.log = logs.id
            WHERE name LIKE 'ledger/%' ORDER BY name, position"""
        found: dict[str, list[dict[str, Any]]] = {}
        with psycopg.connect(self._fleet.url) as db:
            for name, line in db.execute(query):
                found.setdefault(name, []).append(json.loads(line))
        return found

    def _left(self) -> list[str]:
        """Words that should be in no table and no data folder."""
        overdue = {word for word, by in self._erasing.items() if by < time.monotonic()}
        unwanted = {*self._erased, *overdue, *self._said_while_out(), *self._out_before}
        if not unwanted:
            return []
        faults = []
        for where, content in self._everything():
            found = unwanted & {word.decode() for word in TOKEN_BYTES.findall(content)}
            faults += [f"{word} is left in {where}" for word in sorted(found)]
        return faults

    def _said_while_out(self) -> set[str]:
        """The words said after their person had opted out."""
        return {
            word
            for one in self.asked
            if one.created > self._out.get(one.author.id, one.created)
            for word in TOKEN.findall(one.content)
        }

    def _everything(self) -> Iterator[tuple[str, bytes]]:
        """The bytes of all tables, and of all files of the processes that run."""
        tables = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        with psycopg.connect(self._fleet.url) as db:
            for (name,) in db.execute(tables).fetchall():
                copy = sql.SQL("COPY {} TO STDOUT (FORMAT binary)").format(sql.Identifier(name))
                with db.cursor().copy(copy) as rows:
                    yield f"the table {name}", b"".join(bytes(part) for part in rows)
        for member in self._fleet.members:
            for path in member.data.rglob("*") if member.runs else ():
                with contextlib.suppress(OSError):
                    yield str(path.relative_to(self._fleet.folder)), path.read_bytes()

    def _prompted(self) -> Iterator[str]:
        """Words of the erased that the model was told afterwards."""
        first = min(self._erased.values(), default=None)
        if first is None:
            return
        for number, request in enumerate(self._fleet.model.requests[first:], first):
            said = json.dumps(request.body, ensure_ascii=False)
            for word in TOKEN.findall(said):
                if number >= self._erased.get(word, number + 1):
                    yield f"{word} was in a prompt after its person was erased: …{_around(said, word)}…"


async def _empty(look: Callable[[], Awaitable[list[str]]], patience_s: float) -> list[str]:
    """What a look finds, as soon as that is nothing, or after a while."""
    end = time.monotonic() + patience_s
    while (found := await look()) and time.monotonic() < end:  # noqa: ASYNC110 - a store rings no bell
        await asyncio.sleep(0.05)
    return found


def not_one_line(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Commits of a ledger that do not each follow the one before."""
    last: dict[str, str] = {}
    for line in lines:
        if line.get("type") != "commit":
            continue
        branch = line["branch"]
        if branch in last and line["parent_id"] != last[branch]:
            yield f"the commit {line['id']} does not follow {last[branch]}"
        last[branch] = line["id"]


def _adds(line: dict[str, Any], text: str) -> bool:
    """Whether a line of a ledger adds a memory of this text."""
    return any(one["event_type"] == "add" and one["object"] == text for one in line.get("events", ()))


def _ledger(person: User) -> str:
    return f"ledger/user-{person.id}.jsonl"


def _waited(late: Message, early: Message, commands: list[Message]) -> bool:
    """Whether a command of the same person, given before, was under way when `early` was asked."""
    asked, since = late.reply_to, early.reply_to.created
    return any(
        one.reply_to.author is asked.author and one.reply_to.id < asked.id and one.created > since
        for one in commands
    )


def is_notice(message: Message) -> bool:
    """Whether a reply is, or was, no more than the notice that a command takes its time."""
    return any(version.startswith(SLOW) for version in message.versions)


def is_under_way(message: Message) -> bool:
    """Whether a reply says that an answer is to come, or has a button that stops it."""
    if is_notice(message):
        return True
    buttons = (one for row in message.components for one in row.get("components", ()))
    return any(str(one.get("custom_id")).startswith("stop") for one in buttons)


def _shown(message: Message) -> str:
    return f"{message.author.name} in {message.channel.name}: {message.content!r} ({message.id})"


def _around(text: str, word: str) -> str:
    at = text.index(word)
    return text[max(0, at - 200) : at + 50]
