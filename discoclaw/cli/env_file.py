"""`.env`: some of its values set anew, and all else in it left as it is.

Comments, other settings, their order, line breaks and a byte order mark stay. Values are written so that
python-dotenv, which reads the file, gets them back whatever is in them. Knows nothing about what they mean.
"""

import io
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import Binding, parse_stream

from discoclaw.core.errors import MemoryFault, SettingsError
from discoclaw.store.files import check_place, new_file

HEADER = """\
# The settings of DiscoClaw, written by `discoclaw init`. The token and the key in here are secret.
# docs/admins/settings.md lists every setting there is.
"""
"""The beginning of a new file."""

_MARK = "\ufeff"
"""A byte order mark, with which some editors begin a file."""
_PLAIN = re.compile(r"[A-Za-z0-9_./:@,+=~%-]*")
"""Values that need no quotation marks, also for other programs that read the file."""
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "${": "${:-$}{"}
"""Between quotation marks. The last one is a variable without a name, whose default is the dollar sign."""
_TO_ESCAPE = re.compile(r"\\|\"|\n|\r|\$\{")


def read(path: Path) -> str:
    """The file's text, "" if there is no file. Raises SettingsError with the reason if it can't be read."""
    logging.getLogger("dotenv").setLevel(logging.ERROR)  # what is wrong with a line, `changed` says
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8"
        ) from None
    except OSError as error:
        raise SettingsError(f"can't read {path}: {error.strerror or error}; check what it is") from None


def check_writable(path: Path) -> None:
    """Raise MemoryFault or Refused if the file can't be written, as far as that shows before it is tried."""
    target = _target(path)
    check_place(target, replace=True)
    folder = target.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise MemoryFault(f"can't write {path}: you may not write in the folder {folder}; use another one")


def write(path: Path, text: str) -> None:
    """Replace the file, whole or not at all, readable by its owner alone, and its group if no others could.

    A symbolic link stays one: what it leads to is replaced. Written by root, the file belongs to whom it
    belonged before, or else its folder: the bot may run as somebody else. Raises MemoryFault and Refused.
    """
    target = _target(path)
    try:
        owner = os.stat(target if target.exists() else target.parent)
        with new_file(target, replace=True) as file:
            # The bot may read it as a member of its group.
            if target.exists() and os.name != "nt" and not owner.st_mode & 0o007:
                os.fchmod(file.fileno(), owner.st_mode & 0o640)
            file.write(text.encode("utf-8"))
    except OSError as error:
        raise MemoryFault(f"can't write {path}: {error.strerror or error}; nothing was changed") from None
    if os.name != "nt" and os.geteuid() == 0:
        with suppress(OSError):  # a mount without owners
            # Whoever owns the folder may have put a link there by now.
            os.chown(target, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path))


def changed(text: str, values: Mapping[str, str]) -> str:
    """The text with these values, "" for none. A setting that isn't there is put behind its comment, or last.

    Raises SettingsError if a line of the text is so wrong that a value would not be read back.
    """
    mark, text = (_MARK, text.removeprefix(_MARK)) if text.startswith(_MARK) else ("", text)
    newline = "\r\n" if "\r\n" in text else "\n"
    bindings = list(parse_stream(io.StringIO(text, newline="")))
    there = {one.key.upper() for one in bindings if one.key is not None}
    missing = {name: value for name, value in values.items() if value and name not in there}
    places = {name: place for name in missing if (place := _commented(bindings, name)) is not None}
    parts = list[str]()
    for number, one in enumerate(bindings):
        named = next((name for name in values if one.key is not None and one.key.upper() == name), None)
        parts.append(one.original.string if named is None else _renewed(one, named, values[named], newline))
        parts += [_line(name, missing[name], newline) for name in places if places[name] == number]
    parts += [_line(name, value, newline) for name, value in missing.items() if name not in places]
    result = "".join(_apart(parts, newline))
    read_back = dotenv_values(stream=io.StringIO(result, newline=""))
    if any(value and read_back.get(name) != value for name, value in values.items()):
        wrong = next((str(one.original.line) for one in bindings if one.error), "?")
        raise SettingsError(
            f"line {wrong} of .env isn't a setting: a quotation mark is not closed; mend it first"
        )
    return mark + result


def _commented(bindings: list[Binding], name: str) -> int | None:
    """The position of the last comment that shows a setting's default, as in `#NAME=value`."""
    form = re.compile(rf"\s*#\s*{name}\s*=")
    found = [
        number for number, one in enumerate(bindings) if one.key is None and form.match(one.original.string)
    ]
    return found[-1] if found else None


def _line(name: str, value: str, newline: str) -> str:
    return f"{name}={_quoted(value)}{newline}"


def _quoted(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return f'"{_TO_ESCAPE.sub(lambda found: _ESCAPED[found[0]], value)}"'


def _renewed(one: Binding, name: str, value: str, newline: str) -> str:
    """One setting with another value: blank lines before it, `export` and a comment behind it stay."""
    string = one.original.string
    if one.key == name and one.value == value and "${" not in value:
        return string
    blank = string[: len(string) - len(string.lstrip())]
    export = "export " if re.match(r"export[^\S\r\n]", string.lstrip()) else ""
    end = newline if string.endswith(("\n", "\r")) else ""
    return f"{blank}{export}{name}={_quoted(value)}{_comment(one)}{end}"


def _comment(one: Binding) -> str:
    """The comment behind a value: what can be left out without changing the value."""
    string = one.original.string.rstrip("\r\n")
    for found in re.finditer(r"[^\S\r\n]+#", string):
        rest = list(parse_stream(io.StringIO(string[: found.start()], newline="")))
        if [(part.key, part.value, part.error) for part in rest] == [(one.key, one.value, False)]:
            return string[found.start() :]
    return ""


def _apart(parts: list[str], newline: str) -> Iterator[str]:
    """The parts, with a line break where one lacks it and another follows."""
    for number, part in enumerate(parts):
        yield part
        if number + 1 < len(parts) and part and not part.endswith(("\n", "\r")):
            yield newline
