"""What rests on deleted or edited messages alone is taken back, by rule."""

from dataclasses import replace

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Source
from discoclaw.core.times import snowflake_at
from discoclaw.core.view import EMPTY, View
from discoclaw.session.deleted_messages import Unsaid, unsay
from tests.tables import each_row

NOW = 1_700_000_000_000


def said(message: str, *, author: str = "inferred", evidence: str = "") -> Origin:
    """Words of a message."""
    source = Source("discord", "1", message) if author == "inferred" else Source()
    return Origin(author, source, said_at=NOW, evidence=evidence)  # type: ignore[arg-type]


def learned(*texts: tuple[str, str]) -> View:
    """A view of (message, text) that were learned one after another; a text that is known is confirmed."""
    draft = Draft(EMPTY, now_ms=NOW)
    for message, text in texts:
        item, outcome = draft.upsert("fact", text, said(message, evidence=text))
        if outcome == "unchanged":
            draft.confirm(item, said(message, evidence=text))
    commit = draft.commit("learned")
    assert commit is not None
    return EMPTY.after(commit)


def after(view: View, *messages: Unsaid) -> View:
    """The view after these messages were deleted or edited."""
    draft = Draft(view, now_ms=NOW + 1000)
    unsay(draft, {one.message_id: one for one in messages}, Origin("inferred", said_at=NOW + 1000))
    commit = draft.commit("a message was deleted")
    return view if commit is None else view.after(commit)


def deleted(message: str) -> Unsaid:
    return Unsaid(message, "1", NOW + 1000)


def texts(view: View) -> list[str]:
    return sorted(item.text for item in view.active())


class TestADeletion:
    def test_takes_back_what_no_other_message_says(self) -> None:
        view = after(learned(("5", "User likes tea."), ("6", "User uses vim.")), deleted("5"))
        assert texts(view) == ["User uses vim."]
        (taken,) = view.taken_back.values()
        assert (taken.text, taken.messages, taken.alone) == ("User likes tea.", ("discord:1/5",), True)

    def test_leaves_what_another_message_says_without_this_source(self) -> None:
        view = after(learned(("5", "User likes tea."), ("6", "User likes tea.")), deleted("5"))
        assert texts(view) == ["User likes tea."]
        assert list(view.sources.values()) == [("discord:1/6",)]
        assert not view.taken_back

    def test_of_all_its_messages_takes_it_back(self) -> None:
        view = learned(("5", "User likes tea."), ("6", "User likes tea."))
        assert texts(after(view, deleted("5"), deleted("6"))) == []
        assert texts(after(after(view, deleted("5")), deleted("6"))) == []

    def test_repeated_changes_nothing_more(self) -> None:
        once = after(learned(("5", "User likes tea.")), deleted("5"))
        assert after(once, deleted("5")) is once

    def test_leaves_what_the_person_confirmed(self) -> None:
        view = learned(("5", "User likes tea."))
        draft = Draft(view, now_ms=NOW + 500)
        draft.upsert("fact", "User likes tea.", said("", author="stated"))
        commit = draft.commit("remembered")
        assert commit is not None
        assert texts(after(view.after(commit), deleted("5"))) == ["User likes tea."]

    def test_lets_other_words_be_learned_whenever_they_were_said(self) -> None:
        view = after(learned(("5", "User likes tea.")), deleted("5"))
        draft = Draft(view, now_ms=NOW + 2000)
        assert draft.upsert("fact", "User likes tea.", said("5"))[1] == "ignored"
        assert draft.upsert("fact", "User likes tea.", said("6"))[1] == "restored"


def edited(now: str, before: str | None, at: int = NOW + 1000) -> Unsaid:
    return Unsaid("5", "1", at, before, now)


class TestAnEdit:
    @each_row(
        ("before", "now", "stays"),
        [
            ("I drink black coffee", "I drink black tea", False),
            ("I drink black coffe", "I drink black coffee!", True),
            ("I drink black coffee", "I drink black coffee, and I use vim", True),
            ("I drink black coffee", "", False),
            ("Ich mag schwarzen Kaffee", "Ich mag gar nichts", False),
            (None, "Well, the user drinks black coffee", True),
            (None, "I drink tea", False),
        ],
    )
    def test_takes_back_what_the_new_words_leave_out(self, before: str | None, now: str, stays: bool) -> None:
        view = after(learned(("5", "User drinks black coffee.")), edited(now, before))
        assert (texts(view) == ["User drinks black coffee."]) is stays

    def test_names_no_message_as_taken_back_since_it_is_still_there(self) -> None:
        view = after(learned(("5", "User likes tea.")), edited("nothing", "I like tea"))
        (taken,) = view.taken_back.values()
        assert taken.messages == ()

    def test_of_which_the_old_words_are_unknown_leaves_what_was_learned_later(self) -> None:
        view = after(learned(("5", "User likes tea.")), edited("nothing", None, at=NOW - 1000))
        assert texts(view) == ["User likes tea."]

    def test_of_an_old_message_counts_as_newer_than_what_was_said_before_it(self) -> None:
        old, new = (str(snowflake_at(NOW + ms)) for ms in (-5000, 0))
        view = learned((new, "User likes tea."))
        (item,) = view.active()
        draft = Draft(view, now_ms=NOW + 2000)
        words = Origin("inferred", Source("discord", "1", old), said_at=NOW + 1000)
        late = replace(words, edited=True)
        assert draft.upsert("fact", "User likes coffee.", words, given_id=item.id)[1] == "ignored"
        assert draft.upsert("fact", "User likes coffee.", late, given_id=item.id)[1] == "updated"
