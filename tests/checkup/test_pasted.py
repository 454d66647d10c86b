"""What is pasted where a token, a key or an address belongs."""

import re

import pytest

from discoclaw.checkup.pasted import Server, check_key, check_token, server_at, vendor_of
from discoclaw.core.errors import SettingsError

TOKEN = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"
CLIENT_SECRET = "0123456789abcdef-BCDEF0123456789"
LEFT_OUT = "Left out /{}: the bot appends what it needs."


@pytest.mark.parametrize(
    ("typed", "server"),
    [
        ("http://127.0.0.1:11434", Server("http://127.0.0.1:11434")),
        ("http://127.0.0.1:11434/", Server("http://127.0.0.1:11434")),
        ("localhost:11434", Server("http://localhost:11434")),
        ("'https://models.example/proxy/'", Server("https://models.example/proxy")),
        ("http://[::1]:8080", Server("http://[::1]:8080")),
        ("11434", Server("http://127.0.0.1:11434")),
        ("http://127.0.0.1:11434/v1", Server("http://127.0.0.1:11434", LEFT_OUT.format("v1"))),
        ("http://h/v1/messages/", Server("http://h", LEFT_OUT.format("v1/messages"))),
        ("http://h/api/tags", Server("http://h", LEFT_OUT.format("api/tags"))),
    ],
)
def test_an_address_becomes_that_of_the_server(typed: str, server: Server) -> None:
    assert server_at(typed) == server


@pytest.mark.parametrize(
    "typed",
    ["", "my computer", "ftp://h", "http://", "http://h:99999", "http://[::1", "http://h/?key=1", "99999999"],
)
def test_what_is_no_address_is_not_repeated(typed: str) -> None:
    with pytest.raises(
        SettingsError, match=r"^ANTHROPIC_BASE_URL=…: is not an address; it must look like http"
    ):
        server_at(typed)


@pytest.mark.parametrize("typed", ["sk-ant-api03-abc", "gsk_abc", TOKEN, CLIENT_SECRET])
def test_a_secret_is_not_taken_for_the_name_of_a_machine(typed: str) -> None:
    with pytest.raises(SettingsError, match=r"^ANTHROPIC_BASE_URL=…: is a key or a token; an address") as no:
        server_at(typed)
    assert typed not in str(no.value)


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (" ", "is empty"),
        (f'"{TOKEN}"', "has quotation marks around it; leave them out"),
        (f"“{TOKEN}”", "has quotation marks around it; leave them out"),
        (f"Bot {TOKEN}", "begins with “Bot”; leave that word out"),
        (TOKEN.replace(".", " ", 1), "has spaces or line breaks in it"),
        (TOKEN.replace(".", "\n", 1), "has spaces or line breaks in it"),
        (f"{TOKEN}ü", "has letters that no token has; copy the token once more"),
        (CLIENT_SECRET, "is the application's client secret"),
        (f" {CLIENT_SECRET}\n", "is the application's client secret"),
    ],
)
def test_what_is_no_token_is_one_line_without_it(token: str, why: str) -> None:
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


@pytest.mark.parametrize(
    ("key", "vendor"),
    [
        ("sk-ant-api03-x", "Anthropic"),
        ("sk-proj-x", "OpenAI"),
        ("sk-x", "OpenAI"),
        ("sk-or-v1-x", "OpenRouter"),
        ("AIzaSy-x", "Google"),
        ("of-some-other-form", "Google"),
    ],
)
def test_each_vendors_key_is_taken_for_that_vendor_and_a_known_one_for_no_other(
    key: str, vendor: str
) -> None:
    check_key(key, "A_KEY", vendor, "A_URL")
    if vendor_of(key) is not None:
        other = "Google" if vendor != "Google" else "OpenAI"
        with pytest.raises(
            SettingsError, match=f"^A_KEY=…: is a key of .*, and {other} is asked; use a key of"
        ):
            check_key(key, "A_KEY", other, "A_URL")
