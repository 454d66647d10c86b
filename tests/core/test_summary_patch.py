"""What a model changes in a summary counts only if a new message says so, in a patch or in prose."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.patch import Lines
from discoclaw.core.rolling_text import HEADINGS, Line, Notes, fitted, ordered, read
from discoclaw.core.summary_patch import MOST, NewMessage, News, Revision
from discoclaw.core.text import utf16_length
from tests.tables import each_row

NAMES = frozenset({"Anna", "Ben", "Sam", "Sam #2", "DiscoClaw"})
OLD = """\
Now:
- 2026-11-18 Anna: moves the bot to Postgres 16
Open:
- 2026-11-18 Ben: asks in which region the servers are to run
- 2026-11-10 Anna: books the room for 2026-11-12
Decided:
- 2026-11-18 Anna: the budget is 500 euros
- 2026-11-17 Ben: docs are at https://docs.example/a
Who wants what:
- 2026-11-17 Sam: wants logs in JSON
- 2026-11-17 Sam #2: does not want emails"""


def news(*said: tuple[str, str], day: str = "2026-11-19") -> News:
    return News(tuple(NewMessage(name, day, text) for name, text in said), NAMES, day)


def settled(previous: str, answer: str, said: News) -> str:
    """The summary that follows from an answer in prose."""
    return Revision(previous, said).revised(answer)[0]


SMALL_TALK = news(("Ben", "good morning, the weather is fine"), ("Anna", "hello 7 times"))


def with_line(old: str, new: str) -> str:
    """The old summary, with one line of it rewritten by the model."""
    assert old in OLD
    return OLD.replace(old, new)


BUDGET, DOCS, REGION = "l4", "l5", "l2"


def patched(said: News, previous: str = OLD, **changes: list[dict[str, str]]) -> tuple[str, list[str]]:
    """The summary that follows from a patch, and what was refused."""
    return Revision(previous, said).revised(Lines.model_validate(changes))


class TestAPatch:
    SAID = news(("Ben", "we got more, the budget is 600 euros now"), ("Anna", "then it is Oslo"))

    def test_is_about_numbered_lines(self) -> None:
        shown = Revision(f"They met.\n{OLD}", SMALL_TALK).numbered.splitlines()
        assert shown[:4] == [
            "l1 They met.",
            "Now:",
            "l2 2026-11-18 Anna: moves the bot to Postgres 16",
            "Open:",
        ]
        assert Revision(OLD, SMALL_TALK).numbered.splitlines()[7].startswith(f"{DOCS} 2026-11-17 Ben: docs")

    def test_adds_lines_with_the_day_and_the_name_of_what_they_quote(self) -> None:
        one = {"section": "decided", "source": "m2", "quote": "then it is Oslo"}
        said = "- 2026-11-19 Anna: the servers run in Oslo\n"
        for text in (
            "the servers run in Oslo",
            "Anna: the servers run in Oslo",
            "Ben: the servers run in Oslo",
            "- the servers run in Oslo (done)",
        ):
            assert patched(self.SAID, add=[{**one, "text": text}]) == (
                OLD.replace("Decided:\n", f"Decided:\n{said}"),
                [],
            )

    def test_changes_a_line(self) -> None:
        one = {
            "id": BUDGET,
            "text": "the budget is 600 euros",
            "source": "m1",
            "quote": "the budget is 600 euros",
        }
        new = with_line("2026-11-18 Anna: the budget is 500", "2026-11-19 Ben: the budget is 600")
        assert patched(self.SAID, change=[one]) == (new, [])

    def test_marks_a_line_which_leaves_with_the_next_one(self) -> None:
        once, _ = patched(self.SAID, done=[{"id": REGION, "source": "m2", "quote": "then it is Oslo"}])
        assert once == with_line("servers are to run", "servers are to run (done)")
        gone = OLD.replace("\n- 2026-11-18 Ben: asks in which region the servers are to run", "")
        assert patched(SMALL_TALK, once) == (gone, [])

    def test_leaves_a_line_that_the_message_is_not_about_beside_the_new_one(self) -> None:
        said = news(("Ben", "everything shall be free of charge"))
        for one in (BUDGET, DOCS, REGION):
            change = {"id": one, "text": "everything is free of charge", "source": "m1"}
            kept = patched(said, change=[{**change, "quote": "everything shall be free"}])[0]
            assert set(OLD.splitlines()) < set(kept.splitlines())
            assert "2026-11-19 Ben: everything is free of charge" in kept

    def test_drops_a_line_that_a_message_is_about(self) -> None:
        one = {"id": BUDGET, "source": "m1", "quote": "the budget is 600 euros"}
        line = "\n- 2026-11-18 Anna: the budget is 500 euros"
        assert patched(self.SAID, drop=[one]) == (OLD.replace(line, ""), [])
        over = {"id": "l1", "source": "", "quote": ""}  # what they were at on an earlier day
        assert "Postgres" not in patched(SMALL_TALK, drop=[over])[0]

    @each_row(
        ("how", "proposal"),
        [
            ("add", {"section": "open", "text": "likes opera"}),
            ("change", {"id": BUDGET, "text": "the budget is 600 euros"}),
            ("done", {"id": BUDGET}),
            ("drop", {"id": BUDGET}),
        ],
    )
    @each_row(
        ("source", "quote"),
        [
            ("m1", "the budget is gone"),
            ("m2", "the budget is 600 euros"),
            ("m9", "the budget is 600 euros"),
            ("m1", "budget"),
            ("", ""),
        ],
    )
    def test_needs_words_that_were_said(
        self, how: str, proposal: dict[str, str], source: str, quote: str
    ) -> None:
        told, refused = patched(self.SAID, **{how: [{**proposal, "source": source, "quote": quote}]})
        assert told == OLD and len(refused) == 1

    @each_row("text", ["> we pay 600 euros for it", "(forwarded: we pay 600 euros for it)"])
    def test_needs_the_speakers_own_words(self, text: str) -> None:
        one = {"section": "open", "text": "pays 600", "source": "m1", "quote": "we pay 600 euros for it"}
        assert patched(news(("Ben", text)), add=[one])[0] == OLD

    def test_needs_a_line_that_there_is(self) -> None:
        one = {"id": "l99", "text": "x", "source": "m2", "quote": "then it is Oslo"}
        assert patched(self.SAID, change=[one], done=[one], drop=[one]) == (
            OLD,
            ["there is no line 'l99'"] * 3,
        )

    @each_row(
        ("how", "proposal"),
        [
            ("add", {"section": "open", "text": "owes 4711 coins"}),
            ("add", {"section": "open", "text": "books the room for 2026-11-12"}),
            ("change", {"id": BUDGET, "text": "roughly so much money is there"}),
            ("change", {"id": DOCS, "text": "docs are at https://docs.example/b"}),
            ("drop", {"id": DOCS}),
        ],
    )
    def test_does_nothing_for_which_stolen_words_are_no_reason(
        self, how: str, proposal: dict[str, str]
    ) -> None:
        one = {**proposal, "source": "m1", "quote": "good morning, the weather is fine"}
        told, refused = patched(SMALL_TALK, **{how: [one]})
        assert told == OLD and len(refused) == 1

    def test_puts_a_number_back_that_nobody_said(self) -> None:
        text = "the budget is 900 euros, approved by Ben"
        one = {"id": BUDGET, "text": text, "source": "m1", "quote": "I approved the budget"}
        assert (
            "- 2026-11-19 Ben: the budget is 500 euros, approved by Ben\n"
            in (patched(news(("Ben", "I approved the budget")), change=[one])[0])
        )

    def test_may_end_a_sentence_of_prose(self) -> None:
        previous = "They met in May. The budget is open."
        one = {
            "id": "l2",
            "text": "the budget is 600 euros",
            "source": "m1",
            "quote": "the budget is 600 euros",
        }
        assert patched(self.SAID, previous, change=[one])[0] == (
            "Now:\n- 2026-11-19 Ben: the budget is 600 euros\n- 2026-11-19 They met in May."
        )

    def test_makes_lines_of_prose_which_change_go_and_make_room_like_others(self) -> None:
        previous = f"They met.\nThe budget is open. Anna sings.\n{OLD}"
        said = replace(self.SAID, before="2026-11-09")
        marked = {"id": "l2", "source": "m1", "quote": "the budget is 600 euros"}
        over = {"id": "l1", "source": "", "quote": ""}
        once, refused = patched(said, previous, done=[marked], drop=[over])
        lines = "- 2026-11-09 The budget is open. (done)\n- 2026-11-09 Anna sings."
        assert (once, refused) == (OLD.replace("Open:", f"{lines}\nOpen:"), [])
        assert fitted(once, utf16_length(once) - 60) == OLD
        singing = OLD.replace("Open:", "- 2026-11-09 Anna sings.\nOpen:")
        assert patched(self.SAID, once) == (singing, [])
        assert patched(self.SAID, singing, drop=[{**over, "id": "l2"}]) == (OLD, [])

    def test_is_the_speakers_whose_words_a_line_has(self) -> None:
        said = news(("Anna", "I move our servers to Oslo on Friday"), ("Ben", "ok, fine"), ("Sam", "Friday!"))
        one = {"section": "now", "source": "m2", "quote": "ok, fine"}
        for text, name in (
            ("moves the servers to Oslo on Friday", "Anna"),
            ("Ben: moves the servers to Oslo on Friday", "Anna"),
            ("agrees to everything on Friday and Monday", "Ben"),  # in words that nobody else used
        ):
            line = f"- 2026-11-19 {name}: {text.removeprefix('Ben: ')}"
            assert line in patched(said, add=[{**one, "text": text}])[0].splitlines()
        changed = {"id": BUDGET, "text": "the budget is 600 euros", "source": "m2", "quote": "ok, fine"}
        said = news(("Anna", "we got more money, it is 600 now"), ("Ben", "ok, fine"))
        assert "2026-11-19 Anna: the budget is 600 euros" in patched(said, change=[changed])[0]

    def test_is_nobodys_who_only_quoted_it(self) -> None:
        said = news(("Anna", "> I move our servers to Oslo"), ("Ben", "ok, fine"))
        one = {"section": "now", "text": "moves the servers to Oslo", "source": "m2", "quote": "ok, fine"}
        assert "Ben: moves the servers" in patched(said, add=[one])[0]

    @each_row("said", ["our budget talk is on Friday", "it costs 500", "those euros are mine"])
    def test_drops_no_line_for_a_single_word(self, said: str) -> None:
        for name in ("Anna", "Ben"):
            one = {"id": BUDGET, "source": "m1", "quote": said}
            kept, refused = patched(news((name, said)), drop=[one])
            assert kept == OLD and len(refused) == 1

    def test_may_leave_nothing(self) -> None:
        previous = "Open:\n- 2026-11-18 Anna: lends Ben the car"
        one = {"id": "l1", "source": "m1", "quote": "I never lent Ben my car"}
        assert patched(news(("Anna", "I never lent Ben my car")), previous, drop=[one]) == ("", [])

    @each_row("text", ["", "Anna:", "- "])
    def test_adds_no_line_that_says_nothing(self, text: str) -> None:
        one = {"section": "open", "text": text, "source": "m2", "quote": "then it is Oslo"}
        assert patched(self.SAID, add=[one])[0] == OLD

    def test_counts_only_with_its_first_proposals(self) -> None:
        one = {"section": "open", "source": "m2", "quote": "then it is Oslo"}
        said = patched(
            self.SAID, add=[{**one, "text": f"Oslo {word}"} for word in map(chr, range(0x4E00, 0x4F00))]
        )
        assert len(read(said[0]).lines) == len(read(OLD).lines) + MOST


class TestWithoutAReason:
    @each_row(
        ("line", "rewritten"),
        [
            ("- 2026-11-18 Anna: the budget is 500 euros", "- 2026-11-18 Anna: the budget is 600 euros"),
            ("- 2026-11-18 Anna: the budget is 500 euros", "- 2026-11-19 Anna: the budget is 500 euros"),
            ("- 2026-11-18 Anna: the budget is 500 euros", "- 2026-11-18 Ben: the budget is 500 euros"),
            ("- 2026-11-18 Anna: the budget is 500 euros", "- 2026-11-18 Anna: has 900 to spend"),
            ("- 2026-11-18 Anna: the budget is 500 euros", "- 2026-11-18 Anna: their budget is around 500"),
            ("- 2026-11-17 Sam: wants logs in JSON", "- 2026-11-17 Sam #2: wants logs in JSON"),
            ("- 2026-11-17 Sam: wants logs in JSON", "- 2026-11-17 Sam: would prefer the JSON log format"),
            ("- 2026-11-17 Sam: wants logs in JSON", "- 2026-11-17 Sam: wants logs in JSON (done)"),
            ("- 2026-11-17 Sam #2: does not want emails", "- 2026-11-17 Sam #2: wants emails"),
            ("https://docs.example/a", "https://docs.example/b"),
            ("for 2026-11-12", "for 2026-11-21"),
            ("\n- 2026-11-17 Sam: wants logs in JSON", ""),
            ("\n- 2026-11-18 Ben: asks in which region the servers are to run", ""),
        ],
    )
    def test_a_line_stays_as_it_was(self, line: str, rewritten: str) -> None:
        assert settled(OLD, with_line(line, rewritten), SMALL_TALK) == OLD

    def test_neither_headings_nor_marks_nor_inventions_change_anything(self) -> None:
        invented = "- 2026-11-19 Ben: owes 4711 coins\n- 2026-11-19 Ben: reads https://x.example"
        for answer in (
            OLD.replace("- ", "* ").replace("euros", "Euros!"),
            OLD.replace("Open:\n", "Decided:\n", 1),  # a question is no decision
            f"{OLD}\n- 2026-11-16 Ben: likes opera",  # of an earlier day
            f"{OLD}\n{invented}",  # numbers and links that nobody said
        ):
            assert settled(OLD, answer, SMALL_TALK) == OLD


class TestWithAReason:
    @each_row(
        ("said", "line", "rewritten"),
        [
            (("Anna", "we got more: 600 euros"), "Anna: the budget is 500", "Anna: the budget is 600"),
            (("Ben", "the docs moved to https://d.example"), "https://docs.example/a", "https://d.example"),
            (("Anna", "the room is booked for Monday now"), "2026-11-12", "2026-11-23"),
            (("Anna", "three rooms then"), "books the room for", "books 3 rooms for"),
            (("Sam #2", "I do want emails again"), "does not want emails", "wants emails again"),
            (("Ben", "I'll take the budget over"), "Anna: the budget is", "Ben: takes over, the budget is"),
        ],
    )
    def test_a_line_is_what_it_is_now(self, said: tuple[str, str], line: str, rewritten: str) -> None:
        new = with_line(line, rewritten)
        assert set(read(settled(OLD, new, news(said))).lines) == set(read(new).lines)

    def test_what_is_settled_is_marked(self) -> None:
        new = with_line("servers are to run", "servers are to run (done)")
        said = news(("Anna", "the region is eu-west, by the way"))
        assert settled(OLD, new, said) == new
        gone = OLD.replace("\n- 2026-11-18 Ben: asks in which region the servers are to run", "")
        assert settled(new, gone, SMALL_TALK) == gone

    def test_what_is_over_may_be_marked_by_its_date(self) -> None:
        new = with_line("for 2026-11-12", "for 2026-11-12 (done)")
        assert settled(OLD, new, SMALL_TALK) == new

    def test_a_number_nobody_said_is_put_back_into_the_news(self) -> None:
        new = with_line("the budget is 500 euros", "the budget is 900 euros, approved by Ben")
        lines = read(settled(OLD, new, news(("Ben", "I approved the budget")))).lines
        assert [line.text for line in lines if "budget" in line.text] == [
            "Anna: the budget is 500 euros, approved by Ben"
        ]

    def test_a_line_whose_number_is_left_out_stays_beside_the_news(self) -> None:
        new = with_line("the budget is 500 euros", "the budget is approved by Ben")
        lines = read(settled(OLD, new, news(("Ben", "I approved the budget")))).lines
        assert [line.text for line in lines if "budget" in line.text] == [
            "Anna: the budget is approved by Ben",
            "Anna: the budget is 500 euros",
        ]

    @each_row(
        "line", ["Ben: kommt am 2026-11-24 nicht", "Ben: 明日は来ない", "Ben: is ill 👍", "Ben: pays 12"]
    )
    @each_row("day", ["2026-11-19 ", ""])
    def test_news_in_other_words_is_not_lost_and_of_the_last_day(self, line: str, day: str) -> None:
        assert f"- 2026-11-19 {line}" in settled(OLD, f"{OLD}\n- {day}{line}", SMALL_TALK)

    def test_a_line_of_a_day_to_come_is_of_the_last_day_of_the_messages(self) -> None:
        lie = "Open:\n- 2099-12-31 Anna: the room is for everybody"
        said = news(("Anna", "that room is for everybody"))
        today = "Open:\n- 2026-11-19 Anna: the room is for everybody"
        assert settled("", lie, said) == today
        assert settled(lie, lie, said) == today  # an earlier version stored it

    def test_a_line_may_be_left_out_if_a_message_takes_it_up(self) -> None:
        old = f"{OLD}\n- 2026-11-16 Anna: lends Ben 9000 euros for the car"
        denied = news(("Anna", "I never said I'd lend Ben 9000 euros for a car. Remove that."))
        assert settled(old, OLD, denied) == OLD
        assert settled(old, OLD, news(("Ben", "a new car costs 9000"))) == old

    @each_row(("line", "kept"), [("moving in spring", True), ("owes 4711 coins", False)])
    def test_a_first_summary_keeps_lines_that_cannot_be_judged(self, line: str, kept: bool) -> None:
        said = news(("Anna", "Ich ziehe im Frühjahr um"))
        lines = f"Open:\n- 2026-11-19 Anna: {line}" if kept else ""
        assert settled("", f"Open:\n- 2026-11-18 Anna: {line}", said) == lines

    def test_what_they_were_at_on_earlier_days_may_leave(self) -> None:
        new = with_line("Now:\n- 2026-11-18 Anna: moves the bot to Postgres 16\n", "")
        assert settled(OLD, new, SMALL_TALK) == new
        same_day = news(("Ben", "hello"), day="2026-11-18")
        assert settled(OLD, new, same_day) == OLD


class TestWithoutSpaces:
    OLD = "Decided:\n- 2026-11-18 花子: 予算は500ユーロ\n- 2026-11-18 太郎: サーバーは東京に置く"

    @each_row(
        ("was", "now"),
        [
            ("500", "600"),
            ("花子", "太郎"),
            ("予算は500ユーロ", "予算は500ユーロぐらいである"),
            ("東京", "大阪"),
        ],
    )
    def test_a_line_stays_as_it_was(self, was: str, now: str) -> None:
        said = News(
            (NewMessage("花子", "2026-11-19", "おはようございます"),),
            frozenset({"花子", "太郎"}),
            "2026-11-19",
        )
        assert settled(self.OLD, self.OLD.replace(was, now, 1), said) == self.OLD

    @each_row(
        ("text", "was", "now"),
        [("予算は600ユーロになった", "500", "600"), ("やっぱり大阪に置きます", "東京", "大阪")],
    )
    def test_news_counts(self, text: str, was: str, now: str) -> None:
        said = News((NewMessage("花子", "2026-11-19", text),), frozenset({"花子", "太郎"}), "2026-11-19")
        new = self.OLD.replace(was, now)
        assert set(read(new).lines) <= set(read(settled(self.OLD, new, said)).lines)


class TestProse:
    def test_is_not_compared(self) -> None:
        assert settled("They met in May.", "They met in June.", SMALL_TALK) == "They met in June."

    def test_does_not_end_the_sections(self) -> None:
        same_day = news(("Ben", "good morning"), day="2026-11-18")
        assert settled(OLD, "They talked.", same_day) == f"They talked.\n{OLD}"

    def test_ends_what_they_were_at_on_earlier_days(self) -> None:
        later = OLD.removeprefix("Now:\n- 2026-11-18 Anna: moves the bot to Postgres 16\n")
        assert settled(OLD, "They talked.", SMALL_TALK) == f"They talked.\n{later}"

    def test_ends_a_line_that_a_message_is_about(self) -> None:
        said = news(("Anna", "the 500 euros of budget were cancelled, by the way"), day="2026-11-18")
        line = "\n- 2026-11-18 Anna: the budget is 500 euros"
        assert settled(OLD, "They talked.", said) == f"They talked.\n{OLD.replace(line, '')}"

    def test_may_copy_the_short_names_of_lines(self) -> None:
        copied = Revision(OLD, SMALL_TALK).numbered
        assert settled(OLD, copied, SMALL_TALK) == OLD

    def test_gives_way_to_sections(self) -> None:
        new = "Now:\n- 2026-11-01 Ann: carried over"
        assert settled("They talked.", new, SMALL_TALK) == new


class TestWithoutEnd:
    """Work that grew with the square of the text never ended here."""

    def test_a_word_of_very_many_letters(self) -> None:
        said = news(("Ben", "x" * 200_000))
        new = OLD.replace("500", "600").replace("16", "17")
        assert settled(OLD, new, said) == OLD

    def test_thousands_of_lines_that_are_much_the_same(self) -> None:
        def summary(count: int, first: str) -> str:
            return "Open:\n" + "\n".join(f"- 2026-11-18 Ben: {first} {n} tea or coffee" for n in range(count))

        old, new = summary(1_000, "orders"), summary(2_000, "brings")
        kept = read(settled(old, new, SMALL_TALK)).lines
        assert set(read(old).lines) <= set(kept)


SAID = ["kayak", "lantern", "violin", "pepper", "glacier"]
UNSAID = ["harbour", "saddle", "walnut", "thunder", "meadow", "copper", "17", "2048", "https://x.example/1"]
DAYS = st.integers(1, 9).map(lambda day: f"2026-11-0{day}")


def lines_of(words: list[str]) -> st.SearchStrategy[list[Line]]:
    phrase = st.lists(st.sampled_from(words), min_size=3, max_size=6, unique=True).map(" ".join)
    named = st.tuples(st.sampled_from(["Anna", "Ben"]), phrase).map(": ".join)
    line = st.builds(Line, st.integers(0, len(HEADINGS) - 1), DAYS, named)
    return st.lists(line, min_size=1, max_size=6, unique_by=lambda one: one.text)


ABOUT = news(("Anna", " ".join(SAID)))


@given(lines_of(UNSAID), lines_of([*UNSAID, *SAID]))
def test_each_line_is_an_old_one_or_has_something_that_was_said(old: list[Line], new: list[Line]) -> None:
    previous = str(Notes(lines=ordered(old)))
    kept = read(settled(previous, str(Notes(lines=ordered(new))), ABOUT)).lines
    for line in kept:
        assert (line.date, line.text) in {(one.date, one.text) for one in old} or any(
            word in line.text for word in SAID
        )


@given(lines_of(UNSAID), st.data())
def test_whatever_is_reworded_without_a_message_the_summary_is_the_same(
    old: list[Line], data: st.DataObject
) -> None:
    before = Notes(lines=ordered([one for one in old if one.section]))
    if not before.lines:
        return
    new = list[Line]()
    for line in before.lines:
        words = line.text.split()
        place = data.draw(st.integers(0, len(words) - 1))
        words[place] = data.draw(st.sampled_from([*UNSAID, "Ben:", "Anna:"]))
        new += data.draw(st.sampled_from([[], [line], [Line(line.section, line.date, " ".join(words))]]))
    if new:
        assert settled(str(before), str(Notes(lines=ordered(new))), SMALL_TALK) == str(before)


@given(lines_of(UNSAID), lines_of(UNSAID), DAYS)
def test_nor_is_any_of_it_lost_to_another_line_of_the_day(old: list[Line], new: list[Line], day: str) -> None:
    before = Notes(lines=ordered([one for one in old if one.section and one.date <= day]))
    kept = read(settled(str(before), str(Notes(lines=ordered(new))), news(("Ben", "hello"), day=day)))
    assert set(before.lines) <= set(kept.lines)


@given(lines_of([*UNSAID, *SAID]), lines_of([*UNSAID, *SAID]))
def test_what_is_settled_stays_settled(old: list[Line], new: list[Line]) -> None:
    once = settled(str(Notes(lines=ordered(old))), str(Notes(lines=ordered(new))), ABOUT)
    assert settled(once, once, ABOUT) == once
