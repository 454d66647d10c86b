"""What is known about keys is hidden in whatever text it stands.

No real secret is here: the key of "somebody" is the example of NIP-19, ours is made of a word.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from discoclaw.nostr.event import Keys, redactor_of
from tests.tables import naming

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "nostr.json").read_bytes())
OURS = Keys.parse(hashlib.sha256(b"a key of ours").hexdigest())
THEIRS = "nsec1" + "vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
HINT = "[REDACTED nsec → npub10elfcs4fr0l0r8a...]"
OUR_FORMS = (
    OURS.secret_hex(),
    OURS.secret_hex().upper(),
    "0x" + OURS.secret_hex(),
    OURS.nsec(),
    OURS.nsec().upper(),
)


class TestWhatIsKnownOfKeys:
    def test_each_recorded_text_becomes_what_is_recorded(self) -> None:
        for case in VECTORS["redaction"]:
            with naming(case):
                done = redactor_of(OURS)(case["text"])
                if "redacted" in case:
                    assert done.text == case["redacted"]
                else:
                    assert case["must_not_contain"] not in done.text
                    assert done.redacted or done.flagged

    def test_ours_is_hidden_in_every_form_and_not_even_named(self) -> None:
        for form in OUR_FORMS:
            with naming(form):
                done = redactor_of(OURS)(f"look: {form}!")
                assert done.text.replace("0x", "") == "look: [REDACTED key]!"

    def test_so_are_other_secrets_of_the_settings(self) -> None:
        owner = Keys.generate()
        clean = redactor_of(OURS, secrets=[f"hex:{'cd' * 32}", owner.secret_hex(), "short"])
        for text in ("cd" * 32, owner.nsec(), owner.secret_hex()):
            assert clean(text).text == "[REDACTED key]"
        assert clean("short").text == "short"

    def test_public_keys_of_ours_and_the_owners_are_not_flagged(self) -> None:
        owner = Keys.generate()
        clean = redactor_of(OURS, owner=owner.npub)
        for known in (OURS.public, owner.public.upper(), OURS.npub):
            assert clean(known).text == known
        assert clean("ab" * 32).flagged

    def test_and_nothing_of_it_is_shown_by_what_knows_it(self) -> None:
        assert not any(form in repr(redactor_of(OURS)) for form in OUR_FORMS)

    def test_values_are_cleaned_wherever_a_text_lies(self) -> None:
        deep: Any = {"a": [THEIRS, {THEIRS: 1}], "b": 2, "c": None}
        assert redactor_of(OURS).value(deep) == {"a": [HINT, {HINT: 1}], "b": 2, "c": None}
