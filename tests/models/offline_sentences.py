"""Sentences for the offline model: what people say, what is to be remembered of it, what is answered then.

DAY stands for the day on which it is said. `None` as an answer: it says that it doesn't know.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Case:
    """What one person says, message by message, what is remembered at the end, and answers by question."""

    said: Sequence[str]
    kept: Sequence[str] = ()
    answers: Mapping[str, str | None] = field(default_factory=dict)


CASES = (
    Case(
        ["I work as a nurse."],
        ["User works as a nurse."],
        {
            "what's my job?": "You work as a nurse.",
            "What do I do for a living?": "You work as a nurse.",
            "Can you tell me what my job is?": "You work as a nurse.",
        },
    ),
    # Written before there was any rule.
    Case(
        ["I'm a software engineer at Siemens"],
        ["User is a software engineer at Siemens."],
        {"Where do I work?": "You are a software engineer at Siemens."},
    ),
    Case(["I'm 34 years old"], ["User is 34 years old."], {"How old am I?": "You are 34 years old."}),
    Case(["I just turned 28"], ["User is 28 years old."], {"what is my age?": "You are 28 years old."}),
    Case(
        ["I moved to Porto last month"], ["User lives in Porto."], {"Where do I live?": "You live in Porto."}
    ),
    Case(["I lived in Porto last month"], [], {"Where do I live?": None}),
    Case(
        ["My birthday is on May 3rd"],
        ["User's birthday is on May 3rd."],
        {"When is my birthday?": "Your birthday is on May 3rd."},
    ),
    Case(
        ["I hate mushrooms but love truffles"],
        ["User hates mushrooms.", "User loves truffles."],
        {"Do I like mushrooms?": "You hate mushrooms.", "What do I love?": "You love truffles."},
    ),
    Case(
        ["I'm a nurse", "no, I'm a doctor, not a nurse"],
        ["User is a doctor."],
        {"What is my job?": "You are a doctor."},
    ),
    Case(
        ["My sister works as a nurse"],
        ["User's sister works as a nurse."],
        {"What's my job?": None, "What does my sister do?": "Your sister works as a nurse."},
    ),
    Case(["I have two cats"], ["User has two cats."], {"Do I have any pets?": "You have two cats."}),
    Case(
        ["I have a dog called Rex."],
        ["User has a dog called Rex."],
        {"What's my dog's name?": "You have a dog called Rex."},
    ),
    Case(
        ["I live in Berlin", "I moved to Hamburg"],
        ["User lives in Hamburg."],
        {"Which city do I live in?": "You live in Hamburg."},
    ),
    Case(["I like olives", "I don't like olives any more"], [], {"Do I like olives?": None}),
    Case(["If I worked as a pilot I would live in Dubai"], [], {"What's my job?": None}),
    Case(["Do I live in Rome?"], [], {}),
    Case(["I'm a millionaire lol"], [], {}),
    Case(["My boss told me: I love deadlines"], [], {"What do I love?": None}),
    Case(["I don't work as a teacher"], [], {"what's my job?": None}),
    Case(
        ["I'm flying to Rome next Friday"],
        ["User is flying to Rome next Friday (said DAY)."],
        {"Where am I flying?": "You are flying to Rome next Friday (said DAY)."},
    ),
    Case(["I work as a baker and I live in Graz"], ["User works as a baker.", "User lives in Graz."], {}),
    Case(
        ["My wife is called Eva"],
        ["User's wife is called Eva."],
        {"What's my wife's name?": "Your wife is called Eva.", "What's my name?": None},
    ),
    Case(["I might become a teacher"], [], {}),
    Case(["I wish I lived in Paris"], [], {"Where do I live?": None}),
    Case(
        ["Ich arbeite als Krankenpfleger"],
        ["User arbeitet als Krankenpfleger."],
        {"Was ist mein Beruf?": "Du arbeitest als Krankenpfleger."},
    ),
    Case(["Ich wohne seit März in Graz"], ["User wohnt in Graz."], {"Wo wohne ich?": "Du wohnst in Graz."}),
    Case(["Ich bin 41 Jahre alt"], ["User ist 41 Jahre alt."], {"Wie alt bin ich?": "Du bist 41 Jahre alt."}),
    Case(
        ["Ich mag keine Pilze, aber ich liebe Trüffel"],
        ["User mag keine Pilze.", "User liebt Trüffel."],
        {"Mag ich Pilze?": "Du magst keine Pilze."},
    ),
    Case(["Ich bin nach Wien gezogen"], ["User wohnt in Wien."], {"Wo lebe ich?": "Du wohnst in Wien."}),
    Case(
        ["Nein, ich bin Ärztin, keine Krankenschwester"],
        ["User ist Ärztin."],
        {"Was bin ich von Beruf?": "Du bist Ärztin."},
    ),
    Case(
        ["Meine Schwester arbeitet als Lehrerin"],
        ["Users Schwester arbeitet als Lehrerin."],
        {"Was arbeite ich?": None},
    ),
    Case(
        ["Ich habe eine Katze namens Mia"],
        ["User hat eine Katze namens Mia."],
        {"Habe ich ein Haustier?": "Du hast eine Katze namens Mia."},
    ),
    Case(["Wenn ich Millionär wäre, würde ich in Monaco wohnen"], [], {"Wo wohne ich?": None}),
    Case(
        ["Je travaille comme infirmière"],
        ["User travaille comme infirmière."],
        {"Quel est mon métier ?": "Tu travailles comme infirmière."},
    ),
    Case(["J'habite à Lyon"], ["User habite à Lyon."], {"Où est-ce que j'habite ?": "Tu habites à Lyon."}),
    Case(["J'ai 29 ans"], ["User a 29 ans."], {"Quel âge ai-je ?": "Tu as 29 ans."}),
    Case(
        ["Je déteste les champignons mais j'adore les truffes"],
        ["User déteste les champignons.", "User adore les truffes."],
        {},
    ),
    Case(["Je n'aime plus le café"], [], {}),
    Case(["Ma sœur est médecin"], ["La sœur de User est médecin."], {"Quel est mon métier ?": None}),
    Case(
        ["Trabajo como enfermera"],
        ["User trabaja como enfermera."],
        {"¿Cuál es mi trabajo?": "Trabajas como enfermera."},
    ),
    Case(["Vivo en Sevilla"], ["User vive en Sevilla."], {"¿Dónde vivo?": "Vives en Sevilla."}),
    Case(["Tengo 33 años"], ["User tiene 33 años."], {"¿Cuántos años tengo?": "Tienes 33 años."}),
    Case(
        ["Odio las setas pero me encantan las trufas"],
        ["User odia las setas.", "A User le encantan las trufas."],
        {},
    ),
    Case(["Me he mudado a Valencia"], ["User vive en Valencia."], {"¿Dónde vivo?": "Vives en Valencia."}),
    Case(["Si viviera en Madrid, iría al Prado"], [], {"¿Dónde vivo?": None}),
    Case(
        ["Tengo un perro que se llama Toby"],
        ["User tiene un perro que se llama Toby."],
        {"¿Cómo se llama mi perro?": "Tienes un perro que se llama Toby."},
    ),
    # Taken back, corrected, changed.
    Case(["I'm a nurse", "I'm not a nurse any more"], [], {"what is my job?": None}),
    Case(["I work as a nurse", "I no longer work as a nurse"], [], {"what's my job?": None}),
    Case(["I live in Lisbon", "I don't live in Lisbon any more, I live in Faro"], ["User lives in Faro."]),
    Case(["I have a dog called Rex", "I don't have a dog any more"], [], {"Do I have a dog?": None}),
    Case(["I use vim", "I stopped using vim"]),
    Case(["I use vim"], ["User uses vim."], {"What do I use?": "You use vim."}),
    Case(["I prefer tea", "Actually I prefer coffee, not tea"], ["User prefers coffee."]),
    Case(["I'm vegetarian"], ["User is vegetarian."], {"Am I vegan?": "You are vegetarian."}),
    Case(
        ["My name is Ann", "No, my name is Anna"],
        ["User's name is Anna."],
        {"What's my name?": "Your name is Anna."},
    ),
    Case(["My cat is called Tom", "My cat is called Felix now"], ["User's cat is called Felix."]),
    Case(
        ["My sister lives in Oslo", "My brother lives in Rome"],
        ["User's sister lives in Oslo.", "User's brother lives in Rome."],
        {"Where does my brother live?": "Your brother lives in Rome.", "Where do I live?": None},
    ),
    Case(["I love jazz", "I hate jazz"], ["User hates jazz."]),
    Case(["Ich wohne in Graz", "Ich wohne nicht mehr in Graz"], [], {"Wo wohne ich?": None}),
    Case(["Ich mag Kaffee", "Ich mag keinen Kaffee mehr"], [], {"Mag ich Kaffee?": None}),
    Case(["Ich bin Lehrer", "Nein, ich bin Arzt, nicht Lehrer"], ["User ist Arzt."]),
    Case(["J'aime le café", "Je n'aime plus le café"], [], {"Est-ce que j'aime le café ?": None}),
    Case(["Je suis infirmière", "Non, je suis médecin, pas infirmière"], ["User est médecin."]),
    Case(["J'habite à Lyon", "Je n'habite plus à Lyon"]),
    Case(["Vivo en Sevilla", "Ya no vivo en Sevilla"], [], {"¿Dónde vivo?": None}),
    Case(
        ["Soy enfermera", "No, soy médica, no enfermera"],
        ["User es médica."],
        {"¿Cuál es mi trabajo?": "Eres médica."},
    ),
    Case(["Me gusta el café", "Ya no me gusta el café"]),
    # Never learned from.
    Case(["I might move to Rome next year"]),
    Case(["I'd love a coffee"]),
    Case(["I could work as a pilot"]),
    Case(["When I was a child I lived in Rome"], [], {"Where do I live?": None}),
    Case(["I used to work as a waiter"], [], {"What's my job?": None}),
    Case(["I lived in Rome for ten years"]),
    Case(["I love you"]),
    Case(["I love this song"]),
    Case(["I work as a pilot in a film"]),
    Case(["I use vim if I have to"]),
    Case(["Ich arbeite als Pilot, wenn ich groß bin"]),
    Case(["Je travaille comme pilote dans un jeu"]),
    Case(["Trabajo como piloto en un juego"]),
    Case(["I love it when you say that"]),
    Case(["I like your style"]),
    Case(["I hate it here"]),
    Case(["I live in fear of mushrooms"]),
    Case(["I moved to TypeScript last month"]),
    Case(["I moved to Linux"]),
    Case(["I moved to a new flat yesterday"]),
    Case(["I'm 150 years old haha"]),
    Case(["I'm a potato 😂"]),
    Case(["I live in Paris. Just kidding!"]),
    Case(["In my dream I live in Paris"]),
    Case(["In the game I'm a pilot"]),
    Case(["My character works as a blacksmith"]),
    Case(["He said “I live in the centre of Paris” and left"]),
    Case(["> I live in Paris"]),
    Case(["Tom says: I work as a pilot"]),
    Case(["Sam works as a nurse"], [], {"What's my job?": None, "What does Sam do?": None}),
    Case(["My sister and I live in Bern"]),
    Case(["You work as a nurse, right?"]),
    Case(["I'm a former nurse"], [], {"What's my job?": None}),
    Case(["I'm a bad cook"]),
    Case(["I'm a big fan of trains"]),
    Case(["I'm tired"]),
    Case(["I'm in Rome until Friday"], [], {"Where do I live?": None}),
    Case(["I like coffee but not in the evening"]),
    Case(["I don't work as a nurse, I work as a baker"], ["User works as a baker."]),
    Case(["My back is hurting"]),
    Case(["My sister is annoying"]),
    Case(["Call me later"], [], {"What's my name?": None}),
    Case(["I want two cats"], [], {"Do I have any pets?": None}),
    Case(["I had two cats"], [], {"Do I have any pets?": None}),
    Case(["I have a question"]),
    Case(["I'm going to bed"]),
    Case(["As the saying goes, I love deadlines"]),
    Case(["Falls ich nach Wien ziehe, arbeite ich als Koch"]),
    Case(["Ich würde gern in Wien wohnen"], [], {"Wo wohne ich?": None}),
    Case(["Früher habe ich in Wien gewohnt"], [], {"Wo wohne ich?": None}),
    Case(["Ich habe in Wien gewohnt"]),
    Case(["Ich liebe dich"]),
    Case(
        ["Mein Bruder ist Arzt"],
        ["Users Bruder arbeitet als Arzt."],
        {"Was bin ich von Beruf?": None, "Was macht mein Bruder?": "Dein Bruder arbeitet als Arzt."},
    ),
    Case(["Ich bin müde"]),
    Case(["Ich bin Lehrer, nur Spaß"]),
    Case(["Si j'habitais à Paris, je serais heureux"]),
    Case(["J'aimerais habiter à Rome"]),
    Case(["Je t'aime"]),
    Case(["J'habitais à Rome"], [], {"Où est-ce que j'habite ?": None}),
    Case(["Quisiera vivir en Roma"]),
    Case(["Vivía en Roma"], [], {"¿Dónde vivo?": None}),
    Case(["Mi hermana es médica"], ["La hermana de User es médica."], {"¿Cuál es mi trabajo?": None}),
    # More that is remembered.
    Case(
        ["Hi! My name is Ann and I live in Bern."],
        ["User's name is Ann.", "User lives in Bern."],
        {"Where do I live?": "You live in Bern."},
    ),
    Case(["I have two kids"], ["User has two kids."], {"Do I have any kids?": "You have two kids."}),
    Case(
        ["I have a cat and two dogs"],
        ["User has a cat and two dogs."],
        {"Do I have a cat?": "You have a cat and two dogs."},
    ),
    Case(
        ["I'm allergic to nuts"],
        ["User is allergic to nuts."],
        {"What am I allergic to?": "You are allergic to nuts."},
    ),
    Case(["I was born in 1990"], ["User was born in 1990."], {"When was I born?": "You were born in 1990."}),
    Case(
        ["My favourite colour is green"],
        ["User's favourite colour is green."],
        {"What is my favourite colour?": "Your favourite colour is green."},
    ),
    Case(
        ["I'm moving to Lisbon next month"],
        ["User is moving to Lisbon next month (said DAY)."],
        {"Where do I live?": None},
    ),
    Case(
        ["I have a dentist appointment tomorrow"],
        ["User has a dentist appointment tomorrow (said DAY)."],
        {"When is my dentist appointment?": "You have a dentist appointment tomorrow (said DAY)."},
    ),
    Case(["I work at Siemens"], ["User works at Siemens."], {"Where do I work?": "You work at Siemens."}),
    Case(["I've moved from Berlin to Hamburg recently"], ["User lives in Hamburg."]),
    Case(
        ["I really love green tea a lot"],
        ["User loves green tea."],
        {"Which tea do I like?": "You love green tea."},
    ),
    Case(
        ["I love my garden"],
        ["User loves their garden."],
        {"What do I love?": "I remember: “User loves their garden.”"},
    ),
    Case(["Ich habe zwei Hunde"], ["User hat zwei Hunde."], {"Habe ich Haustiere?": "Du hast zwei Hunde."}),
    Case(
        ["Ich heiße Anna und ich bin 30 Jahre alt"],
        ["User heißt Anna.", "User ist 30 Jahre alt."],
        {"Wie heiße ich?": "Du heißt Anna.", "Wie alt bin ich?": "Du bist 30 Jahre alt."},
    ),
    Case(
        ["Ich habe am 3. Mai Geburtstag"],
        ["User hat am 3. Mai Geburtstag."],
        {"Wann habe ich Geburtstag?": "Du hast am 3. Mai Geburtstag."},
    ),
    Case(
        ["Ich fliege morgen nach Rom"],
        ["User fliegt morgen nach Rom (said DAY)."],
        {"Wohin fliege ich?": "Du fliegst morgen nach Rom (said DAY)."},
    ),
    Case(
        ["Meine Schwester heißt Eva"],
        ["Users Schwester heißt Eva."],
        {"Wie heißt meine Schwester?": "Deine Schwester heißt Eva."},
    ),
    Case(["Je m'appelle Anne"], ["User s'appelle Anne."], {"Comment je m'appelle ?": "Tu t'appelles Anne."}),
    Case(["J'ai deux chats"], ["User a deux chats."], {"Ai-je des animaux ?": "Tu as deux chats."}),
    Case(
        ["J'ai déménagé à Nice le mois dernier"],
        ["User habite à Nice."],
        {"Où est-ce que j'habite ?": "Tu habites à Nice."},
    ),
    Case(["Me llamo Ana"], ["User se llama Ana."], {"¿Cómo me llamo?": "Te llamas Ana."}),
    Case(
        ["Mi cumpleaños es el 3 de mayo"],
        ["El cumpleaños de User es el 3 de mayo."],
        {"¿Cuándo es mi cumpleaños?": "Tu cumpleaños es el 3 de mayo."},
    ),
    # Everything at once, and nothing.
    Case(
        ["I work as a baker and I live in Graz"],
        ["User works as a baker.", "User lives in Graz."],
        {
            "What else do you know about me?": (
                "Here is what I remember about you:\n- You live in Graz.\n- You work as a baker."
            )
        },
    ),
    Case(["I work as a nurse"], ["User works as a nurse."], {"Was ist mein Beruf?": "You work as a nurse."}),
    Case(
        ["I like tea"],
        ["User likes tea."],
        {"What does Sam like?": None, "What's Sam's job?": None, "How old is my sister?": None},
    ),
)
