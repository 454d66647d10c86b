"""Pairing codes: what they name, and until when."""

import re

from discoclaw.bot.pairing import MOST, WINDOW_S, Pairing, code_of, user_of

NOW, ANN = 1_800_000_123.0, "1456074443980800019"


def test_a_code_is_short_and_names_its_account() -> None:
    code = code_of("token", ANN, NOW)
    assert re.fullmatch(r"([A-Z2-7]{4}-){3}[A-Z2-7]{4}", code)
    assert user_of("token", code, NOW) == ANN
    assert user_of("token", f" {code.lower().replace('-', ' ')}\n", NOW) == ANN


def test_a_code_ends_after_ten_to_twenty_minutes() -> None:
    code = code_of("token", ANN, NOW)
    assert user_of("token", code, NOW + WINDOW_S) == ANN
    assert user_of("token", code, NOW + 2 * WINDOW_S) is None
    assert user_of("token", code, NOW - WINDOW_S) is None


def test_no_other_bots_code_and_no_other_text_names_anybody() -> None:
    code = code_of("token", ANN, NOW)
    assert user_of("another", code, NOW) is None
    assert user_of("token", code_of("token", "7", NOW)[:-1] + "A", NOW) in (None, "7")
    for wrong in ("", "-", code[:-1], code + "A", ANN, "ÄÖÜ", "0000-1111-8888-9999", code * 3):
        assert user_of("token", wrong, NOW) is None


def test_many_strangers_shut_nobody_out_for_longer_than_a_window() -> None:
    pairing = Pairing("token")
    told = [pairing.code(str(stranger), NOW) for stranger in range(1, MOST + 1)]
    assert None not in told and pairing.code(ANN, NOW) is None
    later = NOW + WINDOW_S
    assert pairing.code(ANN, later) == code_of("token", ANN, later)
    assert pairing.code(ANN, later) is None
