"""What counts as a message's own words, and which quotations are copied from them."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.own_words import as_mention, holds_others, is_quoted, own_words, split_added
from tests.core.builders import ANY_TEXT
from tests.examples import FEW
from tests.tables import each_row

OTHERS = "Ben hates all cats"
"""What somebody else said, in the messages below."""


class TestOwnWords:
    @each_row(
        "text",
        [
            "I like tea",
            'I use "vim" and “tmux” and `git`',
            'a 5" screen for me',
            "I don't like the dogs' owner, 'cause they're loud",
            "2 > 1 and 3 >= 2",
            "it's (attached to the wall)",
            "“oui” she said to me and “non” she said to him",
            "« oui » dit-elle à moi et « non » à lui",
            "„ja“ sagte sie zu mir und „nein“ zu ihm",
            "¿qué tal? « oui »",
            "I said: „ja klar“",
        ],
    )
    def test_plain_talk_is_all_of_it(self, text: str) -> None:
        assert own_words(text) == (unicodedata.normalize("NFKC", text),)
        assert not holds_others(text)

    @each_row(
        "text",
        [
            f"> {OTHERS}",
            f">{OTHERS}",
            f"  > {OTHERS}",
            f"\u00a0> {OTHERS}",
            f"\u200b> {OTHERS}",
            f"＞ {OTHERS}",
            f"look:\u2028> {OTHERS}",
            f"look:\r> {OTHERS}",
            f"> > {OTHERS}",
            f">>> so it was\n\n{OTHERS}",
            f"(forwarded: {OTHERS})",
            f"(forwarded: see\n{OTHERS})",
            f"(forwarded: a)\n{OTHERS}",
            f"look\n(attached: {OTHERS}.txt, text/plain, 1 kB)",
            f"```\n{OTHERS}\n```",
            f"```py\nx = 1\n{OTHERS}\n```",
            f"look ```{OTHERS}``` there",
            f"```\n{OTHERS}",
            f"```\n```\n{OTHERS}\n```",
            f"```py\n\n```\n{OTHERS}\n```",
            f"look ``` ```\n{OTHERS}\n```",
            f"~~~\n{OTHERS}\n~~~",
            f"```\nx\n~~~\n{OTHERS}\n```",
            f"````\n```\n{OTHERS}\n```\n````",
            f"```\nx\n> ```\n{OTHERS}\n```",
            f"> ```\n> {OTHERS}\n> ```",
            f"```\nx\n(forwarded: y\n```\n{OTHERS})",
            f"`{OTHERS}`",
            f"``{OTHERS}``",
            f'he said "{OTHERS}" to me',
            f'he said"{OTHERS}"to me',
            f"he said “{OTHERS}”",
            f"er sagte „{OTHERS}“",
            f'er sagte „{OTHERS}"',
            f"il a dit « {OTHERS} »",
            f"er sagte »{OTHERS}«",
            f"hon sa ”{OTHERS}” där",
            f"so »\n«{OTHERS}»",
            f"er sagte „ja\nshe said “{OTHERS}”",
            f"il a dit « oui, “{OTHERS}” »",
            f"彼は「{OTHERS}」と言った",
            f"he said '{OTHERS}' to me",
            f"he said ‘{OTHERS}’ to me",
            f"he said 'I don't know why {OTHERS}' to me",
            f'he said "so it is.\n{OTHERS}"',
            f"he said “so it is.\n\n{OTHERS}”",
            f'on my 5" screen it said "{OTHERS}" today',
            f'he said "{OTHERS}", and she said "no"',
            f'"ok" and "vim" and "{OTHERS}"',
            f'he said "x\n```\ny\n```\n{OTHERS}"',
        ],
    )
    def test_what_others_said_is_not(self, text: str) -> None:
        assert holds_others(text)
        for passage in own_words(text):
            assert not {"Ben", "hates", "cats"} & set(passage.split())

    @each_row(
        ("text", "own"),
        [
            (f"> {OTHERS}\nI like tea", ["I like tea"]),
            (f"I like tea\n> {OTHERS}\nand cake", ["I like tea", "and cake"]),
            (f"I like tea\n>>> {OTHERS}\nand cake", ["I like tea"]),
            (f"I like tea ```{OTHERS}``` and cake", ["I like tea", "and cake"]),
            (f"```\n{OTHERS}\n```\nI like tea", ["I like tea"]),
            (f"I like tea\n(forwarded: {OTHERS})", ["I like tea"]),
            (f'I like "{OTHERS}" as a song', ["I like", "as a song"]),
            ("'cause I like tea\nand the dogs' owner", ["'cause I like tea\nand the dogs' owner"]),
        ],
    )
    def test_what_stands_beside_that_is(self, text: str, own: list[str]) -> None:
        assert [passage.strip() for passage in own_words(text)] == own

    @each_row("text", ["", " \n", "👍", "?!", "> ", "```\n```", "\u200b"])
    def test_nothing_said_is_no_passage(self, text: str) -> None:
        assert own_words(text) == ()

    def test_a_mentioned_name_is_nobodys_words(self) -> None:
        text = f"ask {as_mention(f'@{OTHERS}')} and {as_mention('@Ann')} about it"
        assert text == "ask @Ben\u00a0hates\u00a0all\u00a0cats and @Ann about it"
        assert not is_quoted(OTHERS, own_words(text))
        assert is_quoted("ask and Ann about it", own_words(text))
        assert own_words("a #1 b") == ("a #1 b",)

    def test_a_forward_is_split_off_with_all_behind_it(self) -> None:
        assert split_added("so\n(forwarded: a)\nb") == ("so\n", "(forwarded: a)\nb")
        assert split_added("so (forwarded: a)") == ("so (forwarded: a)", "")

    @FEW
    @given(
        ANY_TEXT,
        st.sampled_from(["> {}", "```\n{}\n```", "(forwarded: {})", '"{}"', "“{}”", "`{}`"]),
        ANY_TEXT,
    )
    def test_whatever_is_said_before(self, before: str, others: str, after: str) -> None:
        text = f"{before}\n{others.format(OTHERS)}\n{after}"
        assert not is_quoted(OTHERS, own_words(text))


class TestQuotations:
    @each_row(
        ("quote", "text"),
        [
            ("I prefer tabs", "well, I prefer tabs over spaces"),
            ("my blog is https://example.org/a.", "my blog is https://example.org/a. And yours?"),
            ("my blog is", "my blog is www.example.org"),
            ("yes please", "yes please!"),
            ("yes please", "Yes, please. And thanks"),
            ("yes", "yes"),
            ("ja", "ja 🙂\nund danke"),
            ("v3.11", "v3.11"),
            ("喜欢喝绿", "我真的很喜欢喝绿茶"),
            ("ฉันรักแมว", "ฉันรักแมวมาก"),
            ("はい", "はい。お願いします"),
            ("मुझे चाय पसंद है", "मुझे चाय पसंद है।"),
            ("می‌خواهم چای بخورم", "می‌خواهم چای بخورم"),
            ("나는 고양이를 좋아해", "나는 고양이를 좋아해요 나는 고양이를 좋아해"),
        ],
    )
    def test_what_is_copied_counts(self, quote: str, text: str) -> None:
        assert is_quoted(quote, own_words(text))

    @each_row(
        ("quote", "text"),
        [
            ("I hate cats", "I prefer tabs over spaces"),
            ("tabs", "I prefer tabs over spaces"),
            ("prefer tabs", "I prefer tabs over spaces"),
            ("I don't", "I don't know yet"),
            ("refer tabs over", "I prefer tabs over spaces"),
            ("prefer tabs ov", "I prefer tabs over spaces"),
            ("js", "I use node.js daily"),
            ("yes please", "yes please do it"),
            ("पसंद", "मुझे चाय पसंद है"),
            ("चाय पसंद", "मुझे चाय पसंद है"),
            ("绿茶", "我真的很喜欢喝绿茶"),
            ("my 猫", "look at my 猫 there"),
            ("I love Ben", "see https://example.org/why-i-love-ben"),
            ("I love Ben", "see www.example.org/?q=i.love.ben"),
            ("love Ben", "see https://example.org/a?love.ben"),
            ("https://example.org/a", "https://example.org/a"),
            ("", "anything"),
            ("?!", "?!"),
            ("👍👍👍", "👍👍👍"),
        ],
    )
    def test_what_is_not_or_is_too_short_does_not(self, quote: str, text: str) -> None:
        assert not is_quoted(quote, own_words(text))

    def test_none_goes_from_one_passage_into_the_next(self) -> None:
        assert not is_quoted("I like all cats", ["I like", "all cats"])

    @FEW
    @given(
        st.lists(
            st.sampled_from(["I", "prefer", "tabs", "Straße", "naïve", "ﬁn", "猫", "चाय", "don't", "Ω"]),
            min_size=1,
        ),
        st.lists(
            st.sampled_from([" ", "  ", "\n", ", ", "! ", " — ", "\u200b ", " 🙂 "]), min_size=10, max_size=10
        ),
        st.sampled_from([str.upper, str.lower, str.title, lambda text: unicodedata.normalize("NFD", text)]),
    )
    def test_case_width_punctuation_and_form_do_not_count(self, words, gaps, form) -> None:
        plain = " ".join(words)
        dressed = "".join(form(word) + gaps[at % len(gaps)] for at, word in enumerate(words))
        for text in ("I prefer tabs Straße naïve ﬁn now", plain, f"so {plain} then"):
            assert is_quoted(dressed, [text]) == is_quoted(plain, [text])
            assert is_quoted(plain, [form(text)]) == is_quoted(plain, [text])

    def test_full_width_is_read_as_usual(self) -> None:
        wide = "".join(chr(ord(char) + 0xFEE0) if char != " " else char for char in "I prefer tabs")
        assert is_quoted(wide, ["I prefer tabs over spaces"])

    @FEW
    @given(ANY_TEXT, ANY_TEXT)
    def test_no_text_makes_it_fail(self, quote: str, text: str) -> None:
        if is_quoted(quote, own_words(text)):
            assert own_words(text)


class TestOrdinaryWriting:
    @each_row(
        ("text", "quote"),
        [
            ("_I live in Berlin_", "I live in Berlin"),
            ("I _really_ hate olives", "I really hate olives"),
            ("__I'm vegan__", "I'm vegan"),
            ("Ich hab´s gekauft", "Ich hab's gekauft"),
            ("Я не їм м`яса, бо моя сім`я веганська", "моя сім'я веганська"),
            ("I`m from Kyiv and I don`t eat meat", "and I don't eat meat"),
            ('אני גר בארה"ב ועובד בחברת הייטק בת"א', "ועובד בחברת הייטק"),
            ("since the '90s I live near my parents' place", "I live near my parents"),
            ("I don't like 'em since my dogs' names", "since my dogs"),
            ("-> I moved to Berlin", "I moved to Berlin"),
            (">_< I failed my driving test", "I failed my driving test"),
            ("~~~ ok\nI live in Berlin now", "I live in Berlin now"),
            ("～～～我住在北京很多年了", "我住在北京很多年了"),
        ],
    )
    def test_is_the_persons_own(self, text: str, quote: str) -> None:
        assert is_quoted(quote, own_words(text))

    @each_row("text", ["- > I hate all cats", "||> I hate all cats||", ">I hate all cats"])
    def test_a_quotation_in_a_list_or_a_spoiler_is_not(self, text: str) -> None:
        assert not is_quoted("I hate all cats", own_words(text))
