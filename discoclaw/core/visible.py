"""The items that may be shown in one place, what a prompt needs of them, and which of them say how to answer.

Pure.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from discoclaw.core.decay import DAY_MS
from discoclaw.core.item import STANDING, Item, by_newest, durable_line
from discoclaw.core.replaced import may_end
from discoclaw.core.text import utf16_length
from discoclaw.core.words import NOT_TELLING, Gist, beginning_with, gist_of, guess, is_common, terms, words_in

CORE = "core"
MINUTE_MS = 60_000
FRAME = len("- []  (src: manual, updated 2026-01-01) [i1]") + 1
"""The least length of a line around its item's kind and text."""
BEGINNING = len("User's phone")
"""Characters at which most texts have said whose and what, and not yet which."""


class Line(NamedTuple):
    """An item's line in a prompt. `cost` is its length in UTF-16 units, with the line break.

    `gist` is equal for texts that say the same, to drop near-duplicates. Two marks of standing items: `bound`
    ones are core, constraints that the person stated, or name what could do harm; `general` ones say how to
    answer whatever the topic. `may_end`: it names something of which there is one at a time.
    """

    text: str
    cost: int
    gist: Gist
    bound: bool = False
    general: bool = False
    may_end: bool = False


def is_standing(item: Item) -> bool:
    """Whether an item is in a prompt unasked, because it says how to answer or its category is core."""
    return item.kind in STANDING or item.facets.category == CORE


class VisibleItems(tuple[Item, ...]):
    """Items with values derived from them, each of which is computed at most once.

    `View.visible` returns the same object as long as the view is the same. So an unchanged memory is not
    filtered, sorted and indexed again for every message.
    """

    @classmethod
    def of(cls, items: Iterable[Item]) -> "VisibleItems":
        """The items themselves, if they are visible items already."""
        return items if isinstance(items, cls) else cls(items)

    def deriving(self) -> Iterator[None]:
        """Compute ahead what a prompt needs, with a rest after each value: 10 ms among 10,000 items."""
        ahead = ("by_id", "identities", "standing", "harmful", "newest", "shortest", "moments", "days")
        for name in (*ahead, "_by_beginning"):
            getattr(self, name)
            yield

    @cached_property
    def by_id(self) -> Mapping[str, Item]:
        return {item.id: item for item in self}

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Their texts by id."""
        return {item.id: item.text for item in self}

    @cached_property
    def keyed(self) -> Sequence[Item]:
        """The items that have a key."""
        return [item for item in self if item.facets.key is not None]

    @cached_property
    def moments(self) -> Mapping[str, object]:
        """The message from which each item was learned, else the minute, by id."""
        return {item.id: item.source.message_id or item.created_at // MINUTE_MS for item in self}

    @cached_property
    def days(self) -> Mapping[str, int]:
        """The day on which each item was learned, as a number, by id."""
        return {item.id: item.created_at // DAY_MS for item in self}

    @cached_property
    def by_moment(self) -> Mapping[object, Sequence[Item]]:
        return _grouped(self, self.moments)

    @cached_property
    def by_day(self) -> Mapping[object, Sequence[Item]]:
        return _grouped(self, self.days)

    @cached_property
    def identities(self) -> tuple[int, ...]:
        """A key for caches about exactly these objects. A cache has to keep the items too, or ids repeat."""
        return tuple(map(id, self))

    @cached_property
    def newest(self) -> Sequence[Item]:
        """All of them, newest first."""
        return sorted(self, key=by_newest)

    @cached_property
    def standing(self) -> Sequence[Item]:
        """The items that may be in a prompt unasked, newest first within three groups.

        These are core ones and stated constraints, what else the person stated, and the rest.
        """
        return sorted(filter(is_standing, self), key=_by_weight)

    @cached_property
    def standing_ids(self) -> frozenset[str]:
        """Their ids."""
        return frozenset(item.id for item in self.standing)

    @cached_property
    def harmful(self) -> Sequence[Item]:
        """The standing items that name what could do harm."""
        return [item for item in self.standing if says_harm(gist_of(item.text))]

    def like(self, item: Item) -> Sequence[Item]:
        """The items of an item's kind whose texts begin alike, itself included, the newest first."""
        beginning = _beginning(item)
        found = self._sorted.get(beginning)
        if found is None:
            found = self._sorted[beginning] = sorted(self._by_beginning.get(beginning, ()), key=by_newest)
        return found

    @cached_property
    def _by_beginning(self) -> Mapping[tuple[str, str], Sequence[Item]]:
        found: dict[tuple[str, str], list[Item]] = {}
        for item in self:
            found.setdefault(_beginning(item), []).append(item)
        return found

    @cached_property
    def _sorted(self) -> dict[tuple[str, str], Sequence[Item]]:
        return {}

    @cached_property
    def shortest(self) -> int:
        """The length of kind and text of the shortest item, in characters."""
        return min((len(item.text) + len(item.kind) for item in self), default=0)


def _grouped(items: Iterable[Item], of: Mapping[str, object]) -> Mapping[object, Sequence[Item]]:
    found: dict[object, list[Item]] = {}
    for item in items:
        found.setdefault(of[item.id], []).append(item)
    return found


def _beginning(item: Item) -> tuple[str, str]:
    """A key that similar texts have in common. It is made for every item, so words would take too long."""
    return item.kind, item.text[:BEGINNING]


def line_of(item: Item) -> Line:
    """An item's line in a prompt."""
    text, gist = durable_line(item), gist_of(item.text)
    standing = is_standing(item)
    bound = standing and (_is_bound(item) or says_harm(gist))
    return Line(text, utf16_length(text) + 1, gist, bound, standing and says_how(gist), may_end(gist))


def _is_bound(item: Item) -> bool:
    stated = item.facets.author == "stated"
    return item.facets.category == CORE or (stated and item.kind == "constraint")


def _by_weight(item: Item) -> tuple[bool, bool, int, str]:
    """Sort key of standing items: bound ones first, then what the person stated, newest first."""
    return (not _is_bound(item), item.facets.author != "stated", *by_newest(item))


# ---------------------------------------------------------------------- how to answer, or a topic of its own

_MANNER = beginning_with(
    """answer reply replies respon address called call. calls. pronoun tone. style. styles. language english
    german french spanish emoji emoticon smiley joke humor humour irony sarcas polite formal informal brief
    short concis terse verbose lengthy long. longer. detail thorough bullet list. lists. table. tables.
    markdown heading headline summar example source cite citation question clarif explain explanation sentence
    paragraph opinion disclaimer apolog prais compliment flatter metric imperial celsius fahrenheit unit.
    units. step jargon acronym abbreviation spelling friendly casual direct honest blunt critical criticism
    serious playful cheerful neutral professional technical plain simpl greeting preamble point. points.
    claim. claims. dry. beginner expert result. results. conclusion
    antwort knapp kurz lang. lange. langer. langen. ausfuhrlich formlich duz siez geduzt gesiezt sprache
    deutsch englisch stil ton. tonfall. witz ironi stichpunkt aufzahlung liste. listen. tabelle beispiel
    quelle. quellen. erklar satz. satze. satzen. einheit metrisch schritt nachfrag ruckfrag hoflich ehrlich
    kritisch locker nennen. nennt. anred angesproch einfach fachbegriff fachsprache begrussung
    repon court bref. breve detaille tutoy tutoi vouvoy vouvoi langue francais anglais blague tableau exemple
    explique phrase. phrases. unite etape poli. polie. polis. honnete appel
    respuest respond cort. corta. corto. cortas. cortos. detallad trate. tratar. traten. tute. tutee. usted
    idioma espanol ingles tono. broma chiste lista. listas. tabla. tablas. ejemplo fuente. fuentes. explic
    frase. frases. unidad pasos. llam sencill
    respost resum rispo rispe dettagl italian portugues tabell esemp spieg semplic chiam chama
    antwoord uitgebreid taal. nederlands engels toon. grap. grappen. lijst voorbeeld uitleg zin. zinnen.
    beleefd
    ответ отвеч кратк коротк подробн язык русск английск стил тон. тона. юмор шут списк таблиц пример источник
    объясн предложени вежлив эмодзи смайл обращ метрическ"""
)
_NAMING = beginning_with(
    """called pronoun nennen. nennt. angesproch anred tutoi tutoy vouvoi vouvoy trate. tratar. traten. appel
    llam chiam chama обращ"""
)
"""Ways to say how somebody wants to be called: what comes with them is a name."""
MOST_NAMES = 3
_UNSPACED = re.compile(
    "返事|返信|回答|答え|敬語|丁寧|簡潔|短く|短い答|絵文字|日本語|英語|箇条書き|出典|"
    "回复|答复|简短|简洁|表情|中文|英文|语气|답변|대답|존댓말|반말|이모지|한국어"
)
"""Words about answering, in scripts without spaces."""
_READ = words_in("english german french spanish portuguese italian dutch russian")
"""The languages of the lists."""
_OTHER_SCRIPTS = re.compile("[\u0370-\u03ff\u0590-\u0eff]")
_ABOUT = words_in(
    """in for about on when while during at if im bei beim fur uber zu zum zur wenn am en dans pour sur quand
    lors para sobre cuando al per su quando nei em voor over bij в во о об для про при"""
)
"""Words that a topic follows: "short sentences in stories"."""
_NOT_TELLING = NOT_TELLING | words_in(
    """wish wishes prefer prefers preferred love loves hate hates dislike dislikes likes avoid avoids keep
    kept write writes written ask asks asked tell told show shown possible best even start starts begin begins
    end ends come comes assistant bot discoclaw chat message messages word words ones
    mochte wunscht mag bevorzugt hasst immer nie nur bitte soll sollen veut aime prefere deteste toujours
    jamais souhaite quon quiere prefiere gusta odia siempre nunca vuole preferisce sempre mai quer wil graag
    altijd nooit хочет любит предпочитает всегда никогда"""
)
_HARM = re.compile(
    "allerg|alerg|intoleran|unvertraglich|vertragt|anaph|coelia|celia[cq]|zoliak|gluten|lactos|laktos|diabet|"
    r"epilep|seizure|asthma|\basma|pregnan|schwanger|enceinte|embarazad|incinta|gravid|zwanger|medication|"
    "medikament|medicament|medicacion|thinners|anticoag|blutverdunn|pacemaker|alcoholi|alkoholi|аллерг|"
    "диабет|беремен|حساسية|アレルギー|过敏|過敏|알레르기"
)


def says_how(gist: Gist) -> bool:
    """Whether a text says how to answer, whatever the message is about."""
    if not isinstance(gist, tuple):
        return True
    told = [word for word in gist if word not in _NOT_TELLING and not word.isdigit()]
    if any(map(_UNSPACED.search, told)):
        return True
    rest = [word for word in told if not _MANNER.match(word)]
    if len(rest) == len(told):
        return not _can_be_read(gist)
    if any(map(_NAMING.match, told)):
        return len(rest) <= MOST_NAMES
    if len(rest) * 2 >= len(told) or not all(map(_is_everyday, rest)):
        return False
    return not rest or _ABOUT.isdisjoint(gist[: gist.index(rest[-1])])


def says_harm(gist: Gist) -> bool:
    """Whether a text names something by which an answer could do harm, as an allergy."""
    return isinstance(gist, tuple) and any(map(_HARM.search, gist))


def _can_be_read(words: tuple[str, ...]) -> bool:
    return guess(words) in _READ and not any(map(_OTHER_SCRIPTS.search, words))


def _is_everyday(word: str) -> bool:
    return all(map(is_common, terms(word)))
