"""A second, deliberately plain reading of code fences, to check the splitter's against."""

from dataclasses import dataclass, field


@dataclass
class Reading:
    """What one message shows: is a fence open at its end, and which lines are code."""

    mark: str = ""
    quoted: bool = False
    code: list[str] = field(default_factory=list)

    @property
    def open(self) -> bool:
        return self.mark != ""


def read(message: str) -> Reading:
    reading = Reading()
    for line in message.removesuffix("\n").split("\n"):
        _take(reading, line)
    return reading


def _take(reading: Reading, line: str) -> None:
    if reading.open and reading.quoted and not line.lstrip(" \t").startswith(">"):
        reading.mark = ""
    if not reading.open:
        reading.mark, reading.quoted = _opens(line)
    elif _closes(reading, line):
        reading.mark = ""
    else:
        reading.code.append(line)


def _opens(line: str) -> tuple[str, bool]:
    prefix, rest = _prefix(line)
    mark = _leading_run(rest)
    if 3 <= len(mark) <= 16 and len(prefix) <= 24 and (mark[0] == "~" or "`" not in rest[len(mark) :]):
        return mark, ">" in prefix
    return _opens_in_the_middle(line)


def _opens_in_the_middle(line: str) -> tuple[str, bool]:
    """The slip "text: ```json", which Discord shows as code."""
    line = line.rstrip(" \t\r")
    if sum(1 for run in _tick_runs(line) if len(run) >= 3) % 2 == 0 or line.endswith("`"):
        return "", False
    before, _, word = line.rpartition("`")
    ticks = len(before) + 1 - len((before + "`").rstrip("`"))
    plain = all(char.isascii() and (char.isalnum() or char in "_+#.-") for char in word)
    if 3 <= ticks <= 16 and plain and word[0].isalpha() and len(word) <= 24:
        return "`" * ticks, line.lstrip(" \t").startswith(">")
    return "", False


def _closes(reading: Reading, line: str) -> bool:
    bare = line.lstrip(" \t>" if reading.quoted else " \t").rstrip()
    if bare and bare.strip(reading.mark[0]) == "":
        return len(bare) >= len(reading.mark)
    runs = [run for run in _tick_runs(bare) if len(run) >= 3]
    return reading.mark[0] == "`" and bare.endswith(reading.mark) and len(runs) % 2 == 1


def _prefix(line: str) -> tuple[str, str]:
    at = 0
    while at < len(line):
        digits = len(line[at:]) - len(line[at:].lstrip("0123456789"))
        if line[at] in " \t>":
            at += 1
        elif line[at] in "-*+" and line[at + 1 : at + 2] in (" ", "\t"):
            at += 2
        elif 1 <= digits <= 9 and line[at + digits : at + digits + 2] in (". ", ") ", ".\t", ")\t"):
            at += digits + 2
        else:
            break
    return line[:at], line[at:]


def _leading_run(text: str) -> str:
    if text[:1] not in ("`", "~"):
        return ""
    return text[: len(text) - len(text.lstrip(text[0]))]


def _tick_runs(line: str) -> list[str]:
    return "".join(char if char == "`" else " " for char in line).split()
