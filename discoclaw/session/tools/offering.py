"""Which tools a model is offered in a turn, decided by simple rules before its first request.

Every tool costs tokens in every request, and most turns need none beyond search, store, update and forget.
The others are offered where they can matter: if there is something for them to work on, and the message or
the talk before it has a word that asks for them. An extra word wastes some tokens; a missing one
hides a tool that is needed, so the lists are generous. They cover the languages that most people write.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from discoclaw.core.words import fold

LOOKED_AT = 4
"""How many messages before the one that is answered are looked at: "yes, do that" names nothing."""
END = 300
"""How much of each message's beginning and end is looked at, in characters. The rest may be a document."""

_WORD = re.compile(r"\w+")
_LENGTHS = range(3, 16)
"""How long the stems are. Those of scripts without spaces are looked for anywhere in the text instead."""
_UNSPACED = "\u2e80"


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known before a turn's first request.

    `text` are the message, what it replies to and the last of the talk, folded; `starts` the beginnings of
    its words. `items` is how many memories may be shown. `personas`: the person has more than one.
    """

    text: str
    starts: frozenset[str]
    items: int
    personas: bool

    @classmethod
    def of(cls, texts: Iterable[str], *, items: int, personas: bool) -> "Moment":
        """The moment of a message: its text, and the other texts to look at."""
        parts = (text if len(text) <= 2 * END else f"{text[:END]}\n{text[-END:]}" for text in texts)
        text = fold("\n".join(parts))
        words = set(_WORD.findall(text))
        starts = frozenset(word[:length] for word in words for length in _LENGTHS if length <= len(word))
        return cls(text, starts, items, personas)


When = Callable[[Moment], bool]


def always(moment: Moment) -> bool:
    """For the tools that most turns may need."""
    return True


def asked(stems: str, *, items: int = 0, personas: bool = False) -> When:
    """A rule: a word begins with one of these stems, and there are so many items.

    With `personas`, it also holds for everybody who has several. A stem of several words is written with "_".
    """
    folded = [fold(stem) for stem in stems.split()]
    phrases = [stem.replace("_", " ") for stem in folded if "_" in stem or stem >= _UNSPACED]
    single = frozenset(stem for stem in folded if "_" not in stem and stem < _UNSPACED)
    assert all(len(stem) in _LENGTHS for stem in single), stems

    def rule(moment: Moment) -> bool:
        if personas and moment.personas:
            return True
        found = not single.isdisjoint(moment.starts) or any(phrase in moment.text for phrase in phrases)
        return found and moment.items >= items

    return rule


remembering = asked(
    """
    remember recall memor keep_in_mind note relat know_about knows
    merk erinner gedacht notier behalt weisst
    souvien souven retien rappel memoris note
    recuerd recorda memori apunt anota sabes
    lembr guarda sabe_sobre ricord tieni_a_mente onthou onthoud herinner weet_je
    запомн помни вспомн знаешь pamieta zapamieta hatirla kom_ihag husk
    记住 记得 記住 記得 知道 覚え 思い出 기억
    """
)
"""For `memory_recall` and `memory_add`, which do more finely what search and store do."""
linking = asked(
    """
    link connect relat belong together associat
    verknupf verlink verbind verbund gehor zusammen
    lier relie associe ensemble enlaz conect relacion vincul junt ligar ligad
    colleg connett insieme koppel verband samen
    связ вместе polacz bagla
    关联 链接 連結 关系 つな 関連 紐付 연결
    """,
    items=2,
)
when_it_changed = asked(
    """
    histor chang when_did since_when how_do_you_know how_did_you_know who_told where_did used_to previous
    earlier learn_that learned_that learnt source version
    verlauf geander anderung seit_wann woher fruher vorher zuvor ursprung
    depuis_quand avant comment_sais d'ou_tu ancien modifi
    cambi desde_cuando como_sabes antes anterior
    mudou desde_quando como_voce_sabe storia da_quando come_sai prima
    geschiedenis veranderd sinds_wanneer hoe_weet
    истори откуда раньше измен kiedy zmien onceki
    历史 歷史 什么时候 什麼時候 以前 履歴 いつから 変更 기록 언제
    """,
    items=1,
)
tidying = asked(
    """
    tidy clean consolidat duplicat merge sort_out declutter organi cleanup
    aufraum raum ordne sortier doppel dublett duplik zusammenfuhr bereinig
    nettoy rang doublon fusionn consolid limpi orden duplic fusiona arrum
    pulisci riordin doppion opruim dubbel samenvoeg
    убер убра дубл объедин приведи porzad duplikat duzenle
    整理 重复 重複 合并 片付 정리
    """,
    items=2,
)
switching = asked(
    """
    persona branch profil role switch identit
    rolle wechsel personlichkeit
    personnalite changer identite personalidad cambia papel troca
    personalita ruolo rol wissel
    персон роль профил переключ osobowosc kisilik
    人格 角色 身份 切换 ペルソナ 役 切り替 페르소나 역할
    """,
    personas=True,
)
