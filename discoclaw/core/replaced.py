"""Which of some items a newer one replaces, as "User lives in Linz" after a move to Graz. Pure.

Nothing here understands a sentence, so in doubt two facts are taken to be true together. Two texts are
*alike* if they begin with the same words and differ in one short passage. The older one *ended* with the
newer one only if they name something of which there is one at a time (a home, a price), or if the newer one
says that something changed ("now"). That never holds for sisters, cats, allergies and the like, of which
people have several. What is merely alike is put in order by date, which does no harm if both are true.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

from discoclaw.core.item import Item, by_newest
from discoclaw.core.words import NOT_TELLING, Gist, beginning_with, fold, words_in

Words: TypeAlias = tuple[str, ...]
LONGEST_VALUE = 6
"""Words in which two texts that are alike may differ."""
GAP = "…"
"""Stands in a frame where the two texts differ."""
_VERBS = beginning_with(
    """lives_in. live_in. lives_at. lives_near. living_in. resides_in. moved_to. cost. costs. due. due_on.
    due_in. weighs. banks_with. account_is_with. shift_changed. diet.
    wohnt_in. lebt_in. zog_nach. kostet. wiegt. der_telefonnummer.
    habite. demenage. coute. pese. vive_en. conduce_un. cuesta. pesa. abita. costa. mora_em. custa.
    woont_in. kost. weegt. живет_в. стоит. весит."""
)
"""Words behind which stands something of which there is one at a time."""
_VERBS_LAST = re.compile(f"{_VERBS.pattern}$")
_NOUNS = beginning_with(
    """home. address. number. email. birthday. age. height. weight. deadline. price. rent. salary. wage.
    budget. password. wifi. timezone. favorite. favourite. nickname. employer. landlord. boss. manager. shift.
    family_doctor. dentist. car.
    adresse. telefonnummer. handynummer. geburtstag. wohnort. preis. miete. gehalt. passwort. liebling
    arbeitgeber. vermieter. hausarzt. beruf. auto.
    numero. prix. loyer. salaire. employeur. metier. voiture. medecin_traitant.
    direccion. telefono. precio. alquiler. sueldo. contrasena. coche.
    indirizzo. prezzo. affitto. stipendio. endereco. preco. aluguel. adres. prijs. huur. salaris.
    wachtwoord."""
)
"""Words for things of which there is one at a time."""
_IS = re.compile(
    r"\b(?:is|are|ist|est|es|e|(?:moved|changed|renamed|raised|lowered|set)\b.* to)"
    r"(?: (?:in|at|on|with|un|une|una|um|uma|ein|eine|der|die|das|een))?(?: (?:dr|mr|mrs|ms|prof))?$"
)
_AFTER = beginning_with("years_old. jahre_alt. ans. anos. anni. jaar_oud.")
"""Words before which stands something of which there is one at a time."""
_WORK = words_in("work works working arbeitet travaille trabaja lavora trabalha werkt работает")
"""Words for work; with others beside them ("two days a week") it is one of several jobs."""
_FOR_WHOM = words_in("at for bei fur chez en para presso per na em bij voor в")
"""Words between one for work and an employer; others say with what, where or when."""
_WHERE = words_in(
    """in at on with near for from to as by of im am an auf bei mit fur von zu als dans sur chez avec pour a
    de en con cerca para com per su presso op bij met voor naar в на с у для"""
)
"""A passage that begins so says something else than one that doesn't: "is Dr. Huber", "is in Linz"."""
_BY_ANY_NAME = beginning_with(
    """favorite. favourite. nickname. password. wifi. diet. moved_to. changed_to. renamed_to. shift_changed.
    beruf. passwort. liebling metier. contrasena. wachtwoord. prefere. preferid. preferit. favorit"""
)
"""Things that may be any word. Of others ("boss", "rent") plain words only say what they are like."""
_SEVERAL = beginning_with(
    """sister brother sibling friend cousin aunt. uncle. niece. nephew. child. children kid. kids. son. sons.
    daughter cat. cats. dog. dogs. pet. pets. colleague coworker client customer neighbo allerg alerg
    intoleran hobb language instrument also. too. another. second. both. part_time during weekend weekday
    used_to worked. lived.
    schwester bruder geschwister freund tante. onkel. kind. kinder. sohn. tochter katze kater. hund. hunde.
    kolleg kund nachbar auch. zweit hatte. arbeitete wohnte
    soeur frere. freres. ami. amis. amie. oncle. fils. fille chat. chats. chien collegue langue aussi.
    hermana hermano amig prima. primo. tia. tio. hijo hija gato gata perro perra coleg cliente idioma tambien
    сестр брат. друг. дочь сын. кот. кошк собак коллег клиент тоже. аллерг"""
)
_NOW = words_in(
    """now currently nowadays jetzt nun mittlerweile inzwischen maintenant desormais ahora actualmente adesso
    ora agora nu tegenwoordig теперь сейчас"""
)
"""Words by which texts that are alike may differ besides."""
_OPEN = words_in(
    """has have likes loves plays reads knows speaks learns owns uses wants takes take taking needs
    drinks eats collects teaches studies hat mag spielt nimmt braucht a aime prend tiene toma
    prende neemt принимает"""
)
"""Words with which "now" tells of one thing more, and not of another one."""
_WORD = re.compile(r"[^\W_]+")


class Pair(NamedTuple):
    """Two items that are alike. `frame` are the words they share around the passage in which they differ.

    It has a `GAP` there, and is empty where only their key says that they are about the same.
    """

    newer: Item
    older: Item
    frame: Words


def alike(items: Iterable[Item], gist: Callable[[Item], Gist]) -> list[Pair]:
    """The pairs of items that say the same of the same thing but for one passage, newest first."""
    by_key: dict[str, list[Item]] = {}
    by_beginning: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        said = gist(item)
        for word in said if isinstance(said, tuple) else ():
            if word not in _NOW:
                by_beginning.setdefault((item.kind, word), []).append(item)
                break
        if item.facets.key is not None:
            by_key.setdefault(item.facets.key, []).append(item)
    pairs = {}
    for group in by_beginning.values():
        if len(group) > 1:
            told = [(one, tuple([word for word in gist(one) if word not in _NOW])) for one in group]
            for (newer, words), (older, others) in combinations(
                sorted(told, key=lambda one: by_newest(one[0])), 2
            ):
                if frame := _frame(words, others):
                    pairs[newer.id, older.id] = Pair(newer, older, frame)
    for same in by_key.values():
        for newer, older in combinations(sorted(same, key=by_newest), 2):
            pairs[newer.id, older.id] = Pair(newer, older, ())
    return sorted(pairs.values(), key=lambda pair: (by_newest(pair.newer), by_newest(pair.older)))


def ended(pair: Pair, gist: Callable[[Item], Gist]) -> bool:
    """Whether the newer item of a pair replaced the older one. What was said at once is true together.

    What was inferred never replaces what the person stated.
    """
    newer, older, frame = pair
    same_message = older.source == newer.source and older.source.type != "manual"
    overrules = (newer.facets.author, older.facets.author) == ("inferred", "stated")
    if older.updated_at == newer.updated_at or same_message or overrules:
        return False
    if not frame:
        return True
    said, said_before = gist(newer), gist(older)
    if _SEVERAL.search(" ".join((*said, *said_before))):
        return False
    changed = not _NOW.isdisjoint(said) and _NOW.isdisjoint(said_before) and _OPEN.isdisjoint(frame)
    if not (changed or _one_at_a_time(frame)) or _says_where(said, frame) or _says_where(said_before, frame):
        return False
    shape = _shape(newer.text, set(said).difference(said_before))
    if shape == "words" and not (changed or _BY_ANY_NAME.search(" ".join(frame[: frame.index(GAP)]))):
        return False
    return shape == _shape(older.text, set(said_before).difference(said))


def ends(items: Iterable[Item], gist: Callable[[Item], Gist]) -> dict[str, int]:
    """When (ms) those items ended that others of them replaced, by id: at the time of the next newer one."""
    # The newest pairs come first, so that the next newer one is the last that counts.
    return {pair.older.id: pair.newer.updated_at for pair in alike(items, gist) if ended(pair, gist)}


def _one_at_a_time(frame: Words) -> bool:
    """Whether a frame is about something of which there is one at a time."""
    gap = frame.index(GAP)
    before, after = " ".join(frame[:gap]), " ".join(frame[gap + 1 :])
    if _VERBS_LAST.search(before) or _AFTER.match(after):
        return True
    if _IS.search(before) and _NOUNS.search(f"{before} {after}"):
        return True
    telling = [word for word in frame if word not in NOT_TELLING]
    return telling in [[word, GAP] for word in _WORK] and not _FOR_WHOM.isdisjoint(frame[gap - 1 : gap])


def _says_where(said: Gist, frame: Words) -> bool:
    """Whether the passage in which a text differs begins with a word like "in"."""
    passage = [word for word in said if word not in _NOW][frame.index(GAP) :]
    return passage[:1] != [] and passage[0] in _WHERE


def may_end(gist: Gist) -> bool:
    """Whether an item with this gist names something of which there is one at a time."""
    if not isinstance(gist, tuple) or _SEVERAL.search(text := " ".join(gist)):
        return False
    return any(each.search(text) for each in (_VERBS, _NOUNS, _AFTER)) or not _WORK.isdisjoint(gist)


def newest_first(items: Sequence[Item], pairs: Sequence[Pair]) -> list[Item]:
    """The items in their order, but those that are alike change places, so that the newest comes first."""
    ordered = list(items)
    places = {item.id: place for place, item in enumerate(ordered)} if pairs else {}
    groups: dict[str, list[Item]] = {}
    for newer, older, _ in pairs:
        if newer.id in places and older.id in places:
            groups.setdefault(newer.id, [newer]).append(older)
    for group in groups.values():
        where = sorted(places[item.id] for item in group)
        for place, item in zip(where, group, strict=True):
            ordered[place], places[item.id] = item, place
    return ordered


def _frame(one: Words, other: Words) -> Words:
    """The words that two texts have around the one passage in which they differ, or none."""
    least, begin, end = min(len(one), len(other)), 0, 0
    while begin < least and one[begin] == other[begin]:
        begin += 1
    while end < least - begin and one[-1 - end] == other[-1 - end]:
        end += 1
    longest = max(len(one), len(other)) - begin - end
    if not begin or not 0 < longest <= LONGEST_VALUE or begin + end == least:
        return ()
    value, their_value = one[begin : len(one) - end], other[begin : len(other) - end]
    if any(not word.isdigit() for word in set(value).intersection(their_value)):
        return ()  # the passages share a word, so more than one thing differs
    before, after = one[:begin], one[len(one) - end :]
    return (*before, GAP, *after) if not NOT_TELLING.issuperset((*before, *after)) else ()


def _shape(text: str, passage: Collection[str]) -> str:
    """The shape of a passage in its text: in "User's boss is …", "strict" doesn't replace "Maria"."""
    own = set(passage) - _NOW
    written = [word for word in _WORD.findall(text) if not own.isdisjoint(_WORD.findall(fold(word)))]
    if any(word.isdigit() for word in written):
        return "number"
    return "name" if any(word[0].isupper() for word in written) else "words"
