"""One cutoff for each person, and permissions that end by themselves."""

from discoclaw.core.consent import ALWAYS, NEVER, Consent


class People:
    """Choices and tombstones of nobody, to begin with."""

    def __init__(self) -> None:
        self.refused: dict[str, int] = {}
        self.erased: dict[str, int] = {}
        self.lookups = 0
        self.consent = Consent(self._refused_until, lambda user_id: self.erased.get(user_id, NEVER))

    def _refused_until(self, user_id: str) -> int:
        self.lookups += 1
        return self.refused.get(user_id, NEVER)


class TestTheCutoff:
    def test_it_is_the_later_of_opting_out_and_erasing(self) -> None:
        people = People()
        people.refused["1"], people.erased["1"] = 50, 70
        assert people.consent.cutoff("1") == 70
        assert not people.consent.may_keep("1", 70)
        assert people.consent.may_keep("1", 71)

    def test_nothing_may_be_kept_of_somebody_who_opted_out_and_all_of_who_chose_nothing(self) -> None:
        people = People()
        people.refused["1"] = ALWAYS
        assert people.consent.opted_out("1")
        assert not people.consent.may_keep("1", 10**15)
        assert people.consent.cutoff("2") == NEVER
        assert people.consent.may_keep("2", 0)


class TestAPermission:
    def test_it_names_the_author_and_their_subject(self) -> None:
        asked = People().consent.ask("1", 5)
        assert (asked.user_id, asked.subject, asked.said_at, asked.holds) == ("1", "user-1", 5, True)

    def test_each_ends_when_the_person_opts_out_while_the_message_is_worked_on(self) -> None:
        people = People()
        held = [people.consent.ask("1", 5) for _ in range(3)]
        people.refused["1"] = ALWAYS
        people.consent.changed("1")
        assert not any(one.holds for one in held)
        assert all(one.opted_out for one in held)

    def test_it_ends_when_the_person_is_erased_and_later_words_may_be_kept(self) -> None:
        people = People()
        before, after = people.consent.ask("1", 5), people.consent.ask("1", 9)
        people.erased["1"] = 5
        people.consent.changed("1")
        assert not before.holds
        assert (before.erased, before.opted_out) == (True, False)
        assert after.holds
        assert not after.erased

    def test_reading_it_looks_nothing_up(self) -> None:
        people = People()
        asked = people.consent.ask("1", 5)
        before = people.lookups
        assert [asked.holds for _ in range(5)] == [True] * 5
        assert people.lookups == before

    def test_a_change_of_somebody_who_is_not_talking_is_seen_at_their_next_message(self) -> None:
        people = People()
        people.consent.ask("1", 5)
        people.refused["1"] = ALWAYS
        people.consent.changed("1")
        assert not people.consent.ask("1", 6).holds
