"""Whether a memory says how to answer whatever the topic, or is about a topic of its own. Pure.

"User wants short answers" is wanted in every prompt, "User wants type hints in Python" only where Python is
talked about. No message asks for the former, so its words tell: those for answers, their length, tone, form
and language, with next to nothing else. There are lists for some languages. In the others nothing tells the
two apart, so every text counts as one that says how to answer. This only decides which standing memories come
first where there is no room for all of them.
"""

import re

from discoclaw.core.gist import NOT_TELLING, Gist, beginning_with, words_in
from discoclaw.core.words import guess, is_common, terms

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
"""The same in scripts without spaces."""
_READ = words_in("english german french spanish portuguese italian dutch russian")
"""The languages of the lists."""
_OTHER_SCRIPTS = re.compile("[\u0370-\u03ff\u0590-\u0eff]")
_ABOUT = words_in(
    """in for about on when while during at if im bei beim fur uber zu zum zur wenn am en dans pour sur quand
    lors para sobre cuando al per su quando nei em voor over bij в во о об для про при"""
)
"""What follows these words is a topic: "short sentences in stories"."""
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
