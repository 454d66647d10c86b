"""`discoclaw status --ready`: asks the running bot whether it is ready, as a container's health check does.

It is asked again and again, so this imports no more than the settings and Python's own HTTP client.
"""

import json
import sys
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

from discoclaw import settings as settings_module
from discoclaw.core.errors import SettingsError
from discoclaw.core.health import Finding
from discoclaw.settings_types import Listen
from discoclaw.show.words import line

WAIT_S: Final = 4.0
"""How long the bot has to answer. Health checks give up after five seconds or more."""
MOST_BYTES: Final = 1_000_000
ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
"""Addresses that stand for all of this machine's, and one of these."""
KEYS: Final = ("name", "state", "text", "wayOut")
NOT_SET: Final = (
    "DISCOCLAW_METRICS is not set, so the bot can't be asked; set an address and a port, "
    "for example 127.0.0.1:9464, and start the bot again"
)


def ready(*, as_json: bool = False) -> int:
    """Print what the running bot says about itself. Returns the exit code: 1 if it isn't ready.

    Raises SettingsError without an address to ask at.
    """
    at = settings_module.load().metrics
    if at is None or not at.port:
        raise SettingsError(NOT_SET)
    body, fault = asked(at)
    if body is None:
        body = {"ready": False, "findings": [Finding("the bot", "bad", fault).to_json()]}
    if as_json:
        sys.stdout.write(f"{json.dumps(body, indent=2)}\n")
    else:
        said = ["Ready." if body["ready"] is True else "Not ready."]
        for one in (found for found in body["findings"] if isinstance(found, dict)):
            name, state, text, way_out = (line(str(one.get(key, ""))) for key in KEYS)
            to_do = f". To do: {way_out}" if way_out and state != "good" else ""
            said.append(f"{state:8} {name}: {text}{to_do}")
        sys.stdout.writelines(f"{one}\n" for one in said)
    return 0 if body["ready"] is True else 1


def asked(at: Listen) -> tuple[dict[str, Any] | None, str]:
    """Ask /readyz: its answer; or None, and why it is of no use."""
    connection = HTTPConnection(ANYWHERE.get(at.host, at.host), at.port, timeout=WAIT_S)
    try:
        connection.request("GET", "/readyz")
        body = json.loads(connection.getresponse().read(MOST_BYTES))
    except TimeoutError:
        return None, f"no answer at {at} within {WAIT_S:.0f} s, so its event loop may be blocked"
    except ConnectionRefusedError:
        return None, f"nothing listens at {at}; start the bot with `discoclaw run`"
    except OSError as error:
        return None, f"can't be asked at {at}: {error.strerror or error}"
    except (HTTPException, ValueError):
        return None, f"what listens at {at} is not DiscoClaw; see DISCOCLAW_METRICS"
    finally:
        connection.close()
    if not isinstance(body, dict) or not isinstance(body.get("findings"), list):
        return None, f"what listens at {at} is not DiscoClaw; see DISCOCLAW_METRICS"
    return body, ""
