"""What a model says with a text: without thoughts, without marks of its prompt, without the calls in it."""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.models.speech import LONGEST, Hearing, Speech, Written, spoken
from tests.tables import each_row

CALL = Written("f", {"q": 1})
HARMONY = (
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.<|return|>"
)
PARTS = [
    *("<think>", "</think>", "[THINK]", "[/THINK]", "<|im_end|>", "<|im_start|>", "assistant", "user"),
    *(
        "<|channel|>",
        "analysis",
        "final",
        "commentary to=functions.f ",
        "<|message|>",
        "<|end|>",
        "<|start|>",
    ),
    *("<tool_call>", "</tool_call>", '{"name": "f", "arguments": {"q": 1}}', "[TOOL_CALLS]"),
    *("`", "```", "~~~", "\n", " ", "a", '"', "word ", "<", "|", "[", "<|", "\u2028", "é"),
]
MARKED = st.lists(st.sampled_from(PARTS), max_size=14).map("".join)


def read(text: str) -> Speech:
    """What is said with a text, and the calls without how they were written."""
    speech = spoken(text)
    return Speech(speech.text, tuple(one._replace(source="") for one in speech.calls))


def heard(*pieces: str, thinking: bool = False) -> Speech:
    """What is said with a text that comes in these pieces."""
    hearing, said = Hearing(thinking=thinking), ""
    for give in [*(lambda piece=piece: hearing.feed(piece) for piece in pieces), hearing.end]:
        more = give()
        said = more if hearing.anew else said + more
    return Speech(said, tuple(hearing.calls))


@each_row(
    ("text", "said"),
    [
        ("<think>Hm.</think>\n\nHello.", "Hello."),
        ("<think>\n\n</think>\n\nHello.", "Hello."),
        ("[THINK]Hm.[/THINK]Hello.", "Hello."),
        ("First.\n<think>Hm.</think>\nHello.", "First.\n\nHello."),
        ("Hm.\n`x`\n</think>\n\nHello.", "Hello."),
        ("Hm.</think>Hello.", "Hello."),
        ("<think>Hm. And on and on", ""),
        (HARMONY, "Hello."),
        ("<|channel|>commentary<|message|>I'll look.<|end|>", "I'll look."),
        ("<|channel|>final <|constrain|>json<|message|>{}", "{}"),
        ("Hello.<|im_end|>", "Hello."),
        ("Hello.<|im_end|>\n<|im_start|>user\nAnd then?<|im_end|>\n<|im_start|>assistant\nNo.", "Hello.\n"),
        ("Hello.<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nMore.", "Hello.\n\nMore."),
        ("```\ncode\n```<|im_end|>", "```\ncode\n```"),
    ],
)
def test_thoughts_and_marks_are_not_speech(text: str, said: str) -> None:
    assert read(text) == Speech(said)


@each_row(
    "text",
    [
        "Models put thoughts between `<think>` and `</think>`.",
        "```\n<think>\nHm.\n</think>\n<tool_call>{}</tool_call><|im_end|>\n```\nLike this.",
        "~~~\n</think>\n```\n</think>\n~~~",
        "``a ` <|im_end|>``<b>",
        "A <think> tag opens a thought, and a </think> tag closes it.",
        'It ends with "</think>", and <|im_end|> ends a turn; <tool_call> begins a call.',
        "a < b, x[0], [TOOL], <thinker>, <|channel|>news",
        "Hello\n\n",
        "",
    ],
)
def test_what_an_answer_is_about_stays(text: str) -> None:
    assert read(text) == Speech(text)


@each_row(
    "text",
    [
        '<tool_call>\n{"name": "f", "arguments": {"q": 1}}\n</tool_call>',
        '<tool_call>{"name": "f", "arguments": "{\\"q\\": 1}"}',
        '<tool_call>{"type": "function", "function": {"name": "f", "parameters": {"q": 1}}}</tool_call>',
        "<tool_call>\n<function=f>\n<parameter=q>\n1\n</parameter>\n</function>\n</tool_call>",
        '<function=f>{"q": 1}</function>',
        '<function_calls>\n<invoke name="f"><parameter name="q">1</parameter></invoke></function_calls>',
        '<minimax:tool_call><invoke name="f"><parameter name="q">1</parameter></minimax:tool_call>',
        '[TOOL_CALLS][{"name": "f", "arguments": {"q": 1}}]',
        '[TOOL_CALLS]f[ARGS]{"q": 1}</s>',
        '<|python_tag|>{"name": "f", "parameters": {"q": 1}}<|eom_id|>',
        '<|tool_call|>[{"name": "f", "arguments": {"q": 1}}]<|/tool_call|>',
        '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"q": 1}<|call|>',
        '<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"q": 1}',
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"q": 1}\n```',
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
        '{"q": 1}<|tool_call_end|><|tool_calls_section_end|>',
    ],
)
def test_a_call_that_is_written_as_text_is_read(text: str) -> None:
    assert read(text) == Speech("", (CALL,))


def test_several_calls_and_what_is_said_around_them() -> None:
    text = 'I\'ll look.<tool_call>{"name":"f","arguments":{"q":1}}\n{"name":"g"}</tool_call>\nSo.'
    assert read(text) == Speech("I'll look.\nSo.", (CALL, Written("g", {})))
    tagged = "<tool_call><function=f><parameter=q>1</parameter></function><function=h><parameter=p>x"
    assert read(tagged).calls == (CALL, Written("h", {"p": "x"}))


@each_row(
    ("text", "name"),
    [
        ("<tool_call>I would search.</tool_call>", ""),
        ("<tool_call>" + "a" * 49_000 + "!", ""),
        ('<tool_call>{"arguments": {"q": 1}}</tool_call>', ""),
        ('<tool_call>f{"q": 1</tool_call>', "f"),
        ("<tool_call>" + '{"name":' * 5_000, ""),
        ("<tool_call>" + "a" * 60_000, ""),
        ("<|channel|>commentary to=functions.f<|message|>q is 1<|call|>", "f"),
    ],
)
def test_a_call_that_cannot_be_read_is_one_all_the_same(text: str, name: str) -> None:
    assert read(text) == Speech("", (Written(name, None),))


def test_a_call_in_a_thought_that_ends_is_only_thought_of() -> None:
    text = '<think>Maybe:\n<tool_call>{"name": "f"}</tool_call>\n</think>No.'
    assert read(text) == Speech("No.")


def test_a_model_that_thinks_first_is_heard_from_the_end_of_its_thought() -> None:
    hearing = Hearing(thinking=True)
    assert [hearing.feed(piece) for piece in ("Hm.", "\n</thi", "nk>\n", "\nHel", "lo.")] == [
        *[""] * 3,
        "Hel",
        "lo.",
    ]
    assert hearing.thinks_first and not hearing.anew
    assert heard("No", " thought.", thinking=True) == Speech("No thought.")


@given(MARKED, st.lists(st.integers(1, 9), min_size=1))
def test_a_text_says_the_same_in_whatever_pieces_it_comes(text: str, sizes: list[int]) -> None:
    pieces, at = [], 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    assert heard(*pieces) == spoken(text)


@given(st.text(st.sampled_from("ab\n `~<>|[]/_"), max_size=600))
def test_a_text_without_marks_passes_unchanged_and_soon(text: str) -> None:
    hearing, said = Hearing(), ""
    for number, character in enumerate(text, 1):
        said += hearing.feed(character)
        assert len(text[:number].lstrip()) - len(said) <= LONGEST
    assert said + hearing.end() == text.lstrip()
