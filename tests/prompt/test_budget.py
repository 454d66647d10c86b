"""How much fits: what is kept, what is cut, and in which order things give way."""

from dataclasses import replace
from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.message import Me, Said
from discoclaw.core.text import utf16_length
from discoclaw.prompt import assemble
from discoclaw.prompt.assemble import Assembled, Budget, Entry
from discoclaw.prompt.quote import dated, display_names
from discoclaw.prompt.quote import recent_lines as lines_of
from tests.prompt.builders import assembled
from tests.prompt.reader import DURABLE, GROUP_TITLE, RECENT, ROLLING, SPEAKER, TURN_TITLES, entries, sections
from tests.session.scene import ANN, HOUR, ME, NOW, inbound, said

DAY = "Mon 2026-02-02:\n"
"""The line above the talk of the one day."""

LINES = tuple(f"- [fact] {'fact ' * 10}{number} (src: manual, updated 2026-02-02)" for number in range(8))
WINDOW = tuple(said(number, text=f"{'words ' * 10}{number}") for number in range(1, 11))
NOTES = "notes " * 50


def size(prompt: Assembled) -> int:
    return sum(utf16_length(block.text) for block in prompt.system) + utf16_length(prompt.user)


def within(total: int, **changes: object) -> Assembled:
    materials = {"durable": LINES, "window": WINDOW, "group": NOTES, "rolling": "A summary.", **changes}
    return assembled(budget=Budget(total=total), **materials)


def recent_lines(window: list[Said], me: Me, room: int) -> list[str]:
    """The messages that fit beside the line that names their day."""
    return [line.text for line in lines_of(window, display_names(window, me), UTC, room + len(DAY))]


def notes(prompt: Assembled) -> str:
    """The notes about the channel."""
    return "\n".join(sections(prompt.user, TURN_TITLES).get(GROUP_TITLE, []))


def recent(prompt: Assembled) -> list[str]:
    return [one.text for one in entries(sections(prompt.user, TURN_TITLES).get(RECENT, []), SPEAKER)]


class TestRecentConversation:
    def test_the_newest_lines_that_fit_are_kept_whole(self) -> None:
        lines = recent_lines([said(n, text="x" * 20) for n in range(1, 10)], ME, 3 * len("[Ann]: ") + 3 * 21)
        assert lines == ["[Ann]: " + "x" * 20] * 3

    def test_order_is_oldest_first(self) -> None:
        assert [line[-1] for line in recent_lines([said(1), said(2), said(3)], ME, 1000)] == ["1", "2", "3"]

    def test_one_line_that_is_too_long_ends_it(self) -> None:
        """A gap would make an answer stand behind a question it does not belong to."""
        window = [said(1, text="short"), said(2, text="x" * 500), said(3, text="newest")]
        assert recent_lines(window, ME, 200) == ["[Ann]: newest"]

    def test_a_giant_last_message_is_cut_and_shows_it(self) -> None:
        (line,) = recent_lines([said(1, text="x" * 5000)], ME, 300)
        assert line.startswith("[Ann]: xxx")
        assert line.endswith("…")
        assert utf16_length(line) < 300

    def test_lengths_are_counted_as_discord_does(self) -> None:
        assert recent_lines([said(1, text="😀" * 100)], ME, 160)[0].endswith("…")
        assert not recent_lines([said(1, text="😀" * 100), said(2, text="x" * 140)], ME, 160)[1:]

    def test_no_room_means_no_lines(self) -> None:
        assert recent_lines([said(1)], ME, 0) == []

    def test_the_lines_that_name_days_count_too(self) -> None:
        window = [replace(said(n, text="x" * 20), sent_at=NOW - (9 - n) * 24 * HOUR) for n in range(1, 9)]
        names = display_names(window, ME)
        for room in range(0, 400, 7):
            shown = lines_of(window, names, UTC, room)
            assert sum(utf16_length(line) + 1 for line in dated(shown)) <= room
            assert shown == lines_of(window, names, UTC, 10**6)[len(window) - len(shown) :]

    def test_how_many_made_it_in_is_counted(self) -> None:
        assert assembled(window=WINDOW).shown == 10
        assert within(2000, group="", durable=()).shown == len(recent(within(2000, group="", durable=())))

    @given(st.lists(st.text(max_size=200), max_size=12), st.integers(0, 1500))
    def test_lines_are_the_newest_and_never_exceed_the_budget(self, texts: list[str], room: int) -> None:
        window = [said(number, text=text or "-") for number, text in enumerate(texts, start=1)]
        lines = recent_lines(window, ME, room)
        assert sum(utf16_length(line) + 1 for line in lines) <= room
        everything = recent_lines(window, ME, 10**9)
        if len(lines) != 1:
            assert lines == everything[len(everything) - len(lines) :]
        if 0 < len(lines) < len(everything):
            spare = room - sum(utf16_length(line) + 1 for line in lines)
            assert utf16_length(everything[-len(lines) - 1]) + 1 > spare


class TestWhatGivesWayFirst:
    def test_with_room_nothing_does(self) -> None:
        prompt = within(100_000)
        assert len(recent(prompt)) == 10
        assert notes(prompt) == NOTES
        assert len(sections(prompt.user, TURN_TITLES)[DURABLE]) == 8

    def test_then_the_recent_conversation_oldest_first(self) -> None:
        full = within(100_000)
        prompt = within(size(full) - 100)
        assert recent(prompt) == recent(full)[2:]
        assert prompt.system == full.system
        assert len(sections(prompt.user, TURN_TITLES)[DURABLE]) == 8

    def test_no_more_of_it_than_must(self) -> None:
        full = within(100_000)
        line = utf16_length("[Ann]: " + recent(full)[0]) + 1
        assert recent(within(size(full) - line)) == recent(full)[1:]
        assert recent(within(size(full) - line - 1)) == recent(full)[2:]

    def test_then_notes_about_the_channel(self) -> None:
        bare = within(100_000, window=())
        prompt = within(size(bare) - 100)
        assert recent(prompt) == []
        assert notes(prompt).endswith("…")
        assert NOTES.startswith(notes(prompt)[:-1])
        assert len(sections(prompt.user, TURN_TITLES)[DURABLE]) == 8

    def test_then_the_summary_by_whole_lines_from_its_end(self) -> None:
        summary = "Now:\n- moves the bot\nOpen:\n- which server?"
        bare = within(100_000, window=(), group="", rolling=summary)
        prompt = within(size(bare) - 10, rolling=summary)
        assert prompt.rolling == "Now:\n- moves the bot\nOpen:"
        assert sections(prompt.user, TURN_TITLES)[ROLLING] == prompt.rolling.splitlines()
        assert len(sections(prompt.user, TURN_TITLES)[DURABLE]) == 8

    def test_then_notes_about_the_sender_the_least_important_first(self) -> None:
        bare = within(100_000, window=(), group="", rolling="")
        prompt = within(size(bare) - 10)
        assert notes(prompt) == prompt.rolling == ""
        assert sections(prompt.user, TURN_TITLES)[DURABLE] == list(LINES[:-1])

    def test_system_sender_and_message_never_do(self) -> None:
        text = "y" * 5000
        prompt = within(1, message=inbound(1000, text), content=("Rules " * 100,))
        assert tuple(sections(prompt.user, TURN_TITLES)) == ("Sender:", "Current time:", "User message:")
        assert prompt.user.endswith(text)
        assert "- name: Ann (id 1)" in prompt.user
        assert "Rules " * 99 in prompt.system[0].text
        assert prompt.system[1].text == "You are in the channel #general."

    @given(
        total=st.integers(0, 8000),
        texts=st.lists(st.text(max_size=300), max_size=8),
        group=st.text(max_size=400),
        count=st.integers(0, 8),
    )
    def test_the_whole_fits_whenever_it_can(
        self, total: int, texts: list[str], group: str, count: int
    ) -> None:
        window = tuple(said(number, ANN, text or "-") for number, text in enumerate(texts, start=1))
        materials = {"window": window, "group": group, "durable": LINES[:count]}
        prompt = within(total, **materials)
        least = within(0, **materials)
        assert size(prompt) <= max(total, size(least))
        kept = len(sections(prompt.user, TURN_TITLES).get(DURABLE, []))
        if kept < count:
            assert recent(prompt) == []
            assert notes(prompt) == ""


LOG = Entry("Text 1", "build.log", "with this message", text="\n".join(f"line {n}" for n in range(4_000)))


class TestFiles:
    def test_take_half_of_the_prompt_at_most(self) -> None:
        prompt = within(20_000, files=(LOG, replace(LOG, label="Text 2")))
        [first, second] = prompt.files
        assert 9_000 < utf16_length(assemble.section([first])) < 10_200
        assert LOG.text.startswith(first.text.removesuffix("…")) and (first.cut, second.cut) == (True, True)
        assert second.text == "" and "Text 2: “build.log”, with this message; no room for" in prompt.user

    def test_are_shortened_before_anything_else(self) -> None:
        whole = within(40_000)
        prompt = within(size(whole) + 1_000, files=(LOG,))
        assert size(prompt) <= size(whole) + 1_000
        assert (recent(prompt), notes(prompt), prompt.durable) == (recent(whole), notes(whole), len(LINES))
        assert 200 < utf16_length(prompt.files[0].text) < 1_000

    def test_leave_a_small_prompt_to_the_talk(self) -> None:
        whole = within(40_000)
        prompt = within(size(whole) + 100, files=(LOG,))
        assert prompt.files[0].text == "" and recent(prompt) == recent(whole)
