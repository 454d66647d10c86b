"""What is pasted where an address belongs."""

import pytest

from discoclaw.checkup.pasted import Server, server_at
from discoclaw.core.errors import SettingsError

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
