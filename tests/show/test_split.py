"""Long texts become messages: nothing lost, nothing too long, no code fence cut open."""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.bot.split import Attachment, Message, Piece, Splitter, join, split
from tests.show.fences import read
from tests.tables import each_row


def units(text: str) -> int:
    """What Discord counts, computed without our own code."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def texts(text: str) -> list[str]:
    return [piece.text for piece in split(text)]


WORDS = st.sampled_from(
    ["memory", "is", "a", "ledger", "of", "`events`", "größer", "👩‍👩‍👧", "e\u0301", "。", "`a b"]
)
LINES = st.lists(WORDS, max_size=60).map(" ".join)
LANGUAGES = st.sampled_from(["", "py", "python title=x", "c++", "x" * 40, "😀"])
MARKS = st.sampled_from(
    ["```", "~~~", "````", "~~~~~", "> ```", "- ```", "1. ```", "  ```", "      ```", "> - ~~~"]
)
FENCES = st.builds(lambda mark, language: mark + language, MARKS, LANGUAGES)
ODDITIES = st.sampled_from(
    ["", "   ", "\r", "so: ```json", "x```", "``` a", "``", "`" * 20, "> quoted", "> ", "🇩🇪" * 90, "x" * 700]
)
MESSY = st.lists(st.one_of(LINES, FENCES, MARKS, ODDITIES), max_size=60).map("\n".join)
ANY_TEXT = st.text(alphabet=st.sampled_from("`~> -\n\r\tab.1😀\u0301\u200d\ud800"), max_size=900)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Well-formed Markdown: paragraphs and closed code blocks."""
    parts = []
    for _ in range(draw(st.integers(1, 8))):
        parts.append(draw(LINES.filter(lambda line: line.count("`") % 2 == 0)))
        mark = draw(st.sampled_from(["```", "~~~", "````"]))
        line = st.sampled_from(["if x:", "    return 1", "", "\t# ok", "y = '👍'"])
        code = draw(st.lists(line, max_size=60))
        parts.append("\n".join([mark + draw(st.sampled_from(["", "py"])), *code, mark]))
    return "\n\n".join(parts)


@given(MESSY | ANY_TEXT | documents())
def test_the_pieces_are_the_text_and_each_is_a_message_that_discord_takes(text: str) -> None:
    for limit in (200, 2000):
        pieces = split(text, limit, file_over=600)
        assert join(pieces) == (text if pieces else "")
        for piece in pieces:
            assert 0 < units(piece.text) <= limit and piece.text.strip()
            assert not read(piece.text).open
            assert not (piece.lead + piece.trail).strip(" \t\r\n")


@given(documents())
def test_code_stays_code_and_words_stay_words(text: str) -> None:
    shown = [line for piece in split(text, 250, file_over=10**6) for line in read(piece.text).code]
    assert shown == read(text).code


@given(MESSY)
def test_a_text_that_fits_is_one_message_as_it_is(text: str) -> None:
    if units(text) <= 2000 and text.strip() and not read(text).open:
        assert split(text) == [Message(text)]


@given(MESSY | documents(), st.lists(st.integers(1, 400), min_size=1, max_size=40))
def test_what_settles_while_it_is_written_is_part_of_the_finished_text(text: str, steps: list[int]) -> None:
    splitter, at, turn, pieces = Splitter(200, file_over=500), 0, 0, list[Piece]()
    while at < len(text):
        splitter.add(text[at : at + steps[turn % len(steps)]])
        at, turn = at + steps[turn % len(steps)], turn + 1
        while piece := splitter.settled():
            pieces.append(piece)
            splitter.accept(piece)
        if draft := splitter.draft():
            assert 0 < units(draft.text) <= 200 and draft.text.strip() and not read(draft.text).open
            assert splitter.left.startswith(draft.source)
    while piece := splitter.rest():
        pieces.append(piece)
        splitter.accept(piece)
    assert pieces == split(text, 200, file_over=500)


def test_a_cut_block_is_closed_and_opened_again_in_its_language_and_place() -> None:
    first, second = texts("```python title=a\n" + "x = 1\n" * 400 + "```\nDone.")
    assert first.endswith("\nx = 1\n```")
    assert second.startswith("```python\nx = 1\n") and second.endswith("\nx = 1\n```\nDone.")
    for opened, line, closed in (("- ```py\n", "  x = 1\n", "  ```"), ("> ```py\n", "> x = 1\n", "> ```")):
        first, second = texts(opened + line * 300 + closed + "\nafter")
        assert first.endswith(f"\n{closed}") and second.startswith(f"{closed}py\n{line}")
    assert "```py\n```" not in "".join(texts("w" * 650 + "\n```py\n" + "x" * 3000 + "\n```"))


def test_it_cuts_between_paragraphs_then_lines_sentences_and_words_and_in_no_letter() -> None:
    paragraph = "Word after word. " * 50
    assert texts("\n\n".join([paragraph] * 3)) == [f"{paragraph}\n\n{paragraph}\n\n", paragraph]
    items = "".join(f"- item {i}\n  - below it\n" for i in range(200))
    assert all(text.startswith("- item") for text in texts(items))
    assert all(text.rstrip().endswith(".") for text in texts("This is a sentence. " * 300))
    assert all(text.split(" ")[0] == "word" for text in texts("word " * 1000))
    assert [units(text) for text in texts("😀" * 1000 + "a")] == [2000, 1]
    for letter in ("👩‍👩‍👧", "🇩🇪", "e\u0301\u0302", "❤️", "\r\n"):
        for shift in range(12):
            shown = texts("x" * shift + "z" + letter * 600)
            assert all(not text.strip().replace(letter, "").strip("xz\r\n") for text in shown)
    for shift in range(40):
        spaced = texts("x" * shift + " `code with many spaces in it` here" * 120)
        assert all(text.count("`") % 2 == 0 for text in spaced)


@each_row(
    ("language", "name"),
    [("TypeScript", "code.ts"), ("", "code.txt"), ("exe", "code.txt"), ("../x", "code.txt")],
)
def test_long_code_is_a_file_named_by_its_language(language: str, name: str) -> None:
    code = "".join(f"value_{i} = {i}\n" for i in range(400))
    for indent, end in (("", "```"), ("    ", "    ```"), ("", "")):
        (piece,) = split(f"{indent}```{language}\n{code}{end}")
        assert isinstance(piece, Attachment) and (piece.name, piece.content) == (name, code)
