"""What is pasted where a token, a key or an address belongs."""

import re

import pytest

from discoclaw.checkup.pasted import Server, check_key, check_token, server_at, vendor_of
from discoclaw.core.errors import SettingsError

TOKEN = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"
CLIENT_SECRET = "0123456789abcdef-BCDEF0123456789"
LEFT_OUT = "Left out /{}: the bot appends what it needs."


ADDRESSES = {
    "http://127.0.0.1:11434": Server("http://127.0.0.1:11434"),
    "http://127.0.0.1:11434/": Server("http://127.0.0.1:11434"),
    "localhost:11434": Server("http://localhost:11434"),
    "'https://models.example/proxy/'": Server("https://models.example/proxy"),
    "http://[::1]:8080": Server("http://[::1]:8080"),
    "11434": Server("http://127.0.0.1:11434"),
    "http://127.0.0.1:11434/v1": Server("http://127.0.0.1:11434", LEFT_OUT.format("v1")),
    "http://h/v1/messages/": Server("http://h", LEFT_OUT.format("v1/messages")),
    "http://h/api/tags": Server("http://h", LEFT_OUT.format("api/tags")),
}
NO_ADDRESSES = (
    *("", "my computer", "ftp://h", "http://", "http://h:99999", "http://[::1", "http://h/?key=1"),
    "99999999",
)
NO_TOKENS = (
    (" ", "is empty"),
    (f'"{TOKEN}"', "has quotation marks around it; leave them out"),
    (f"“{TOKEN}”", "has quotation marks around it; leave them out"),
    (f"Bot {TOKEN}", "begins with “Bot”; leave that word out"),
    (TOKEN.replace(".", " ", 1), "has spaces or line breaks in it"),
    (TOKEN.replace(".", "\n", 1), "has spaces or line breaks in it"),
    (f"{TOKEN}ü", "has letters that no token has; copy the token once more"),
    (CLIENT_SECRET, "is the application's client secret"),
    (f" {CLIENT_SECRET}\n", "is the application's client secret"),
)
KEYS = (
    ("sk-ant-api03-x", "Anthropic"),
    ("sk-proj-x", "OpenAI"),
    ("sk-x", "OpenAI"),
    ("sk-or-v1-x", "OpenRouter"),
    ("AIzaSy-x", "Google"),
    ("of-some-other-form", "Google"),
)


def test_an_address_becomes_that_of_the_server() -> None:
    assert {typed: server_at(typed) for typed in ADDRESSES} == ADDRESSES


def test_what_is_no_address_is_not_repeated() -> None:
    told = r"^ANTHROPIC_BASE_URL=…: is not an address; it must look like http"
    for typed in NO_ADDRESSES:
        with pytest.raises(SettingsError, match=told):
            server_at(typed)


def test_a_secret_is_not_taken_for_the_name_of_a_machine() -> None:
    told = r"^ANTHROPIC_BASE_URL=…: is a key or a token; an address"
    for typed in ("sk-ant-api03-abc", "gsk_abc", TOKEN, CLIENT_SECRET):
        with pytest.raises(SettingsError, match=told) as no:
            server_at(typed)
        assert typed not in str(no.value)


def test_what_is_no_token_is_one_line_without_it() -> None:
    for token, why in NO_TOKENS:
        with pytest.raises(SettingsError, match=re.escape(why)) as raised:
            check_token(token)
        said = str(raised.value)
        assert "\n" not in said and CLIENT_SECRET not in said
        assert not any(part in said for part in TOKEN.split("."))


def test_an_empty_key_is_left_to_whoever_asks_for_it_and_a_token_is_a_key_of_nobodys() -> None:
    check_key("", "ANTHROPIC_API_KEY", "Anthropic", "ANTHROPIC_BASE_URL")
    check_token(f" {TOKEN}\n")
    with pytest.raises(SettingsError, match="is the token of a Discord bot"):
        check_key(TOKEN, "ANTHROPIC_API_KEY", "", "ANTHROPIC_BASE_URL")


def test_each_vendors_key_is_taken_for_that_vendor_and_a_known_one_for_no_other() -> None:
    for key, vendor in KEYS:
        check_key(key, "A_KEY", vendor, "A_URL")
        if vendor_of(key) is not None:
            other = "Google" if vendor != "Google" else "OpenAI"
            told = f"^A_KEY=…: is a key of .*, and {other} is asked; use a key of"
            with pytest.raises(SettingsError, match=told):
                check_key(key, "A_KEY", other, "A_URL")
