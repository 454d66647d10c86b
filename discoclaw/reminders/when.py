"""When a reminder is due: what people type as a time, how it repeats, and which moment a clock's time is.

`read` understands the phrases of `EXAMPLES` and their like, in English and German, and nothing by halves:
what it can't read to the end is refused with examples. A library that guesses (dateparser, parsedatetime)
finds a date in nearly every text; a reminder at a guessed time is worse than a question.

A rule is written as RFC 5545 writes it (FREQ, INTERVAL, BYDAY, BYMONTH, BYMONTHDAY), and goes by the days of
a calendar and the time of a wall clock. Where that time is missing on a day, it is as much later as the clock
was put forward; where it comes twice, it is the first. Unlike there, a day that a month doesn't have is its
last one: "every month on the 31st" leaves no month out. Only hours are counted as they pass.

Pure; the current time and the zone are arguments. `whenever`, which resolves gaps and repeated hours, takes
12 ms to load, so it is loaded when first used.
"""

import re
import tomllib
from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from importlib.resources import files
from typing import Final

from discoclaw.core.errors import Refused
from discoclaw.core.reminder import Reminder
from discoclaw.core.zones import local

HOUR_MS: Final = 3_600_000
LATEST: Final = timedelta(days=36_525)
"""The furthest ahead that a reminder may be: a hundred years."""
USUAL: Final = time(9)
"""The time of a day for which none was said."""
EXAMPLES: Final = "`tomorrow at 9`, `in 20 minutes` or `every last Monday of the month`"


@dataclass(frozen=True, slots=True)
class When:
    """When a reminder comes first, and how it repeats, as `Reminder` has it."""

    wall: str = ""
    at: int = 0
    rule: str = ""


# ---------------------------------------------------------------------- moments


def moment(wall: str, zone: tzinfo) -> int:
    """The moment (ms) of a time on a zone's clock; see above for a time that is missing or comes twice."""
    key: str | None = getattr(zone, "key", None)
    if key is None:  # always the same difference from UTC
        return round(datetime.fromisoformat(wall).replace(tzinfo=zone).timestamp() * 1000)
    from whenever import PlainDateTime

    zoned = PlainDateTime.parse_iso(wall).assume_tz(key, disambiguation="compatible")
    return int(zoned.timestamp(unit="millisecond"))


def due(reminder: Reminder, zone: tzinfo) -> int:
    """The moment (ms) at which a reminder is due, for a person in a zone."""
    return moment(reminder.wall, zone) if reminder.wall else reminder.at


def later(reminder: Reminder, now_ms: int, zone: tzinfo) -> Reminder | None:
    """A reminder as it is once it was delivered: due for the first time after now; None if it is over."""
    if not reminder.rule:
        return None
    if not reminder.wall:
        step = _parts(reminder.rule)[1] * HOUR_MS
        passed = max(0, now_ms - reminder.at) // step + 1
        return replace(reminder, at=reminder.at + passed * step)
    begun, near = datetime.fromisoformat(reminder.wall), (local(now_ms, zone) - timedelta(days=2)).date()
    for day in _days(reminder.rule, begun.date()):
        if day < near:
            continue
        wall = _wall(datetime.combine(day, begun.time()))
        if moment(wall, zone) > now_ms:
            return replace(reminder, wall=wall)
    return None


def _wall(clock: datetime) -> str:
    return clock.isoformat(timespec="minutes")


# ---------------------------------------------------------------------- rules

_CODES: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_NTH: Final[Mapping[int, str]] = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", -1: "last"}
_UNITS: Final = {"HOURLY": "hour", "DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}


def _parts(rule: str) -> tuple[str, int, Mapping[str, str]]:
    """The frequency of a rule, its interval, and the rest by name."""
    rest = dict(part.split("=", 1) for part in rule.split(";"))
    return rest.pop("FREQ"), int(rest.pop("INTERVAL", "1")), rest


def _days(rule: str, begun: date) -> Iterator[date]:
    """The days of a rule after one of its days, in order, up to the end of the calendar."""
    frequency, every, rest = _parts(rule)
    try:
        if frequency in ("DAILY", "WEEKLY"):
            on = {_CODES.index(one) for one in rest["BYDAY"].split(",")} if "BYDAY" in rest else set(range(7))
            week, day = begun - timedelta(days=begun.weekday()), begun
            while True:
                day += timedelta(days=every if frequency == "DAILY" else 1)
                weeks = (day - week).days // 7
                if day.weekday() in on and (frequency == "DAILY" or weeks % every == 0):
                    yield day
        months = every * (12 if frequency == "YEARLY" else 1)
        month = begun.year * 12 + begun.month - 1
        if "BYMONTH" in rest:
            month = begun.year * 12 + int(rest["BYMONTH"]) - 1
        while True:
            found = _in_month(month // 12, month % 12 + 1, rest)
            if found is not None and found > begun:
                yield found
            month += months
    except (OverflowError, ValueError):
        return


def _in_month(year: int, month: int, rest: Mapping[str, str]) -> date | None:
    """The day of a month that a rule names; None if it has no fifth Monday. Raises ValueError after 9999."""
    last = monthrange(year, month)[1] if year <= 9999 else 0
    if "BYDAY" in rest:
        nth, weekday = int(rest["BYDAY"][:-2]), _CODES.index(rest["BYDAY"][-2:])
        if nth < 0:
            return date(year, month, last - (date(year, month, last).weekday() - weekday) % 7)
        day = 1 + (weekday - date(year, month, 1).weekday()) % 7 + 7 * (nth - 1)
        return date(year, month, day) if day <= last else None
    wanted = int(rest["BYMONTHDAY"])
    return date(year, month, last if wanted < 0 else min(wanted, last))


def words_of_rule(reminder: Reminder | When) -> str:
    """How a reminder repeats, in words: "every last Monday of the month at 09:00"; "" if it doesn't."""
    if not reminder.rule:
        return ""
    frequency, every, rest = _parts(reminder.rule)
    unit = _UNITS[frequency]
    text = f"every {unit}" if every == 1 else f"every {every} {unit}s"
    days = rest.get("BYDAY", "")
    if days and frequency == "MONTHLY":
        month = "the month" if every == 1 else f"every {every} months"
        text = f"every {_NTH[int(days[:-2])]} {_DAYS[_CODES.index(days[-2:])]} of {month}"
    elif days == "MO,TU,WE,TH,FR" and every == 1:
        text = "every weekday"
    elif days:
        names = [_DAYS[_CODES.index(one)] for one in days.split(",")]
        listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        text = f"every {listed}" if every == 1 else f"{text} on {listed}"
    elif frequency == "YEARLY":
        text += f" on {rest['BYMONTHDAY']} {_MONTHS[int(rest['BYMONTH']) - 1]}"
    elif rest:
        text += " on the last day" if rest["BYMONTHDAY"] == "-1" else f" on day {rest['BYMONTHDAY']}"
    return f"{text} at {reminder.wall[11:]}" if reminder.wall else text


# ---------------------------------------------------------------------- what people type

_NAMED: Final = {
    "noon": time(12), "midnight": time(0), "morning": USUAL, "afternoon": time(15), "evening": time(19),
}  # fmt: skip
_WEEKDAY = "|".join(one.lower() for one in _DAYS)
_MONTH = "|".join(one.lower() for one in _MONTHS)
_ORDINALS: Final = {name: number for number, name in _NTH.items()} | {
    "1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5,
}  # fmt: skip
_ORDINAL = "|".join(_ORDINALS)
_UNIT = "minute|hour|day|week|month|year"
_PATTERNS: Final = [
    re.compile(rf"(?:{pattern})(?= |$)")
    for pattern in (
        r"(?P<skip>on|the|,|of the|here)",
        r"in (?P<half>half 1|1 half) hour",
        rf"in (?P<delay>\d{{1,5}} (?:{_UNIT})(?: (?:and )?\d{{1,5}} (?:{_UNIT}))*)",
        rf"every (?P<nth>{_ORDINAL}) (?P<nth_day>{_WEEKDAY}|day)(?P<monthly> of(?: the| every)? month)?",
        r"every(?: (?P<months>\d{1,3}))? months? on (?:the|day) "
        r"(?P<monthday>\d{1,2}(?:st|nd|rd|th)?|first|last)(?: day)?",
        r"every(?: (?P<years>\d{1,3}))? years? on (?:the )?"
        rf"(?P<yearday>\d{{1,2}})\.?(?:st|nd|rd|th)? (?:of )?(?P<yearmonth>{_MONTH})",
        rf"every year on (?P<yearmonth2>{_MONTH}) (?P<yearday2>\d{{1,2}})(?:st|nd|rd|th)?",
        rf"every(?: (?P<often>\d{{1,3}}))? (?P<unit>{_UNIT})s?",
        r"every(?: (?P<weeks>\d{1,3}))? "
        rf"(?P<days>(?:{_WEEKDAY}|weekday)(?:(?: ,)?(?: and)? (?:{_WEEKDAY}))*)",
        r"every (?P<part>morning|afternoon|evening)",
        r"(?P<iso>\d{4}-\d\d-\d\d)",
        rf"(?P<day>\d{{1,2}})(?:\.|st|nd|rd|th)? (?:of )?(?P<month>{_MONTH})(?: ,)?(?: (?P<year>\d{{4}}))?",
        rf"(?P<month2>{_MONTH}) (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?: ,)?(?: (?P<year2>\d{{4}}))?",
        r"(?P<day3>\d{1,2})\.(?P<month3>\d{1,2})\.(?P<year3>\d{4})?",
        r"(?P<word>today|tomorrow|overmorrow)",
        rf"(?:(?P<next>next|this) )?(?P<weekday>{_WEEKDAY})",
        r"next (?P<next_unit>week|month|year)",
        r"(?:at )?(?P<hour>\d{1,2})[:.](?P<minute>\d\d)(?::\d\d)?(?: ?(?P<half_day>am|pm))?(?: o'clock)?",
        r"(?:at )?(?P<hour2>\d{1,2}) ?(?P<half_day2>am|pm)",
        r"(?:at )?(?P<hour3>\d{1,2}) o'clock",
        r"at (?P<hour4>\d{1,2})",
        r"(?:at |of the |in the |this )?(?P<named>noon|midnight|morning|afternoon|evening)",
    )
]
_HOUR: Final = re.compile(r"(?P<hour>\d{1,2})$")


def read(text: str, now_ms: int, zone: tzinfo) -> When:
    """What people type as a time, for somebody in a zone. Raises Refused if it can't be read, or is over."""
    found = _read(text, now_ms, zone, bare=True)
    if found is None and text.strip()[:1].isdigit():
        found = _read(f"in {text}", now_ms, zone)
    if found is None:
        raise Refused(f"I can't read {text.strip()[:80]!r} as a time; try {EXAMPLES}")
    return found


def split(text: str, now_ms: int, zone: tzinfo) -> tuple[When, str]:
    """The time at one end of a request, and the rest of it. Raises Refused as `read` does."""
    when, what = divided(text, now_ms, zone)
    return read(when, now_ms, zone), what


def divided(text: str, now_ms: int, zone: tzinfo) -> tuple[str, str]:
    """The words for a time at the beginning or the end of a request, or both, and the rest. Raises Refused.

    "in 20 minutes to call Ann", "call Ann tomorrow at 9", "on Friday call Ann at 9", "am Freitag um 9 an den
    Zahnarzt". Two times that make none together are refused, as what may be one is ("tomorrow 7 …").
    """
    words = text.split()
    sizes = range(min(len(words) - 1, 14), 0, -1)
    front = next((size for size in sizes if _read(" ".join(words[:size]), now_ms, zone)), 0)
    back = next((size for size in sizes if _read(" ".join(words[-size:]), now_ms, zone, bare=size > 1)), 0)
    if not front and not back:
        raise Refused(f"I can't find a time in that; try {EXAMPLES}, and then what to remind you of")
    begin, what, end = words[:front], words[front : len(words) - back], words[len(words) - back :]
    when = " ".join([*begin, *end])
    if not what:
        raise Refused("say what I should remind you of, too")
    if front and back and _read(when, now_ms, zone, bare=True) is None:
        raise Refused(f"I find two times in that; name one, as in {EXAMPLES}")
    if front and not back and re.fullmatch(r"\d\d?", what[0]) and _read(f"{when} at {what[0]}", now_ms, zone):
        raise Refused(f"if that is a time, write `at {what[0]}`; if not, begin with what to remind you of")
    rest = " ".join(what)
    return when, _CONNECTS.sub("", rest).strip(" ,:") or rest


def names_time(text: str, now_ms: int, zone: tzinfo) -> bool:
    """Whether a number or a time that can be read stands somewhere in a text."""
    words = re.findall(r"[\w:.]+", text)
    some = (" ".join(words[at : at + size]) for size in (1, 2, 3) for at in range(len(words)))
    try:
        return any(char.isdigit() for char in text) or any(_read(one, now_ms, zone) for one in some)
    except Refused:  # it is one, but over
        return True


_CONNECTS = re.compile(r"^(?:to|that|about|of|daran|an|dass|zu)\b[,:]? *", re.IGNORECASE)


def _read(text: str, now_ms: int, zone: tzinfo, *, bare: bool = False) -> When | None:
    """What a text says, if it says nothing but a time. `bare`: a number at its end is the hour."""
    now, said = local(now_ms, zone).replace(tzinfo=None), dict[str, str]()
    rest = _plain(text)
    while rest:
        fits = (pattern.match(rest) for pattern in _PATTERNS)
        match = next((one for one in fits if one is not None), None)
        if match is None:
            match = _HOUR.match(rest) if bare else None
        if match is None:
            return None
        new = {name.rstrip("0123456789"): one for name, one in match.groupdict().items() if one}
        new.pop("skip", None)
        if new.keys() & said.keys():
            return None  # two dates, or two times
        said |= new
        rest = rest[match.end() :].lstrip()
    try:
        return _made(said, now, now_ms, zone) if said else None
    except (OverflowError, ValueError):
        return None


def _plain(text: str) -> str:
    """A text in the words of the patterns."""
    text = re.sub(r"(?<=\d)t(?=\d\d:)", " ", text.lower().strip().rstrip("!?:,"))
    if not re.search(r"(?<!at )(?<!um )\b\d{1,2}\.(?:0?[1-9]|1[0-2])\.$", text):  # a date, not 1:12
        text = text.rstrip(".")
    text = re.sub(r"\b([ap])\. ?m\b\.?", r"\1m", text)
    text = re.sub(r"\b(\d+)[.,]5 ?(?:h|hrs?|hours?|std|stunden?)\b", r"\1 h 30 m", text)
    text = re.sub(r"\bin (\d+) ?h ?(\d\d?)m?$", r"in \1 h \2 m", text)
    text = re.sub(r"(?<![\w:.])(\d+)(h|hrs?|m|mins?|d|w)(?=\d|\b)", r"\1 \2 ", text)
    words = re.sub(r",", " , ", text.replace("’", "'")).split()
    english, german = _words()
    known = {**english, **german} if any(one in german and one != "am" for one in words) else english
    plain = " ".join(known.get(word, word) for word in words)
    plain = plain.replace("day after tomorrow", "overmorrow").replace("every night", "every evening")
    plain = re.sub(r"\b(half past|quarter past|quarter to|halb) (\d{1,2})\b", _on_the_clock, plain)
    # "am Abend", and "jeden Morgen", which isn't "every tomorrow".
    return re.sub(r"\bon (?=morning|afternoon|evening)", "", plain.replace("every tomorrow", "every morning"))


def _on_the_clock(said: re.Match[str]) -> str:
    """ "half past 9" as 9:30, and the German "halb 9" as 8:30."""
    away = {"half past": 30, "quarter past": 15, "quarter to": -15, "halb": -30}[said[1]]
    hour, minute = divmod(int(said[2]) * 60 + away, 60)
    return f"{hour or 12}:{minute:02}"


@lru_cache(maxsize=1)
def _words() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Our words for those that people type, in English and in German."""
    with (files("discoclaw.reminders") / "words.toml").open("rb") as file:
        listed = tomllib.load(file)
    english, german = (
        {typed: ours for ours, some in listed[name].items() for typed in some.split()}
        for name in ("english", "german")
    )
    return english, german


def _made(said: dict[str, str], now: datetime, now_ms: int, zone: tzinfo) -> When | None:
    """What was said as a time. None if it makes no sense; Refused if it is over."""
    clock = _clock(said)
    dates = said.keys() & {"iso", "day", "word", "weekday", "next_unit"}
    if {"delay", "half"} & said.keys():
        return None if dates else _delayed(said, clock, now, now_ms)
    if rule := _rule(said, now):
        if rule.startswith("FREQ=HOURLY"):
            step = _parts(rule)[1] * HOUR_MS
            return None if clock is not None else When(at=now_ms + step, rule=rule)
        if said.keys() & dates:  # but the day of "every week on Monday", which is part of the rule
            return None
        once = re.sub(r";INTERVAL=\d+", "", rule)
        for day in _days(once, now.date() - timedelta(days=1)):
            that_day = datetime.combine(day, clock or USUAL)
            if moment(_wall(that_day), zone) > now_ms:
                return When(wall=_wall(that_day), rule=rule)
        return None
    first = _first(said, clock, now, now_ms, zone)
    if first is None or len(dates - {"weekday"}) > 1:
        return None
    if "weekday" in said and _DAYS[first.weekday()].lower() != said["weekday"]:
        return None  # "Wednesday 26 November", which is a Thursday
    wall = _wall(first)
    if moment(wall, zone) <= now_ms:
        raise Refused(f"{wall.replace('T', ' ')} is over already; name a time that is still to come")
    if first - now > LATEST:
        raise Refused("that is more than a hundred years from now; name an earlier time")
    return When(wall=wall)


def _clock(said: Mapping[str, str]) -> time | None:
    """The time of a day that was said."""
    named = said.get("named") or said.get("part")
    if "hour" not in said:
        return _NAMED[named] if named else None
    hour, minute = int(said["hour"]), int(said.get("minute", 0))
    half = said.get("half_day") or {"afternoon": "pm", "evening": "pm", "morning": "am"}.get(named or "")
    if half and hour <= 12 and (named is None or hour):
        hour = hour % 12 + (12 if half == "pm" else 0)
    elif "half_day" in said:
        raise ValueError("13 pm")
    return time(hour, minute) if hour != 24 else time(0, minute)


def _delayed(said: Mapping[str, str], clock: time | None, now: datetime, now_ms: int) -> When | None:
    """A time that is so far from now: minutes and hours as they pass, longer ones by the calendar."""
    amounts = dict.fromkeys(_UNIT.split("|"), 0)
    for number, unit in re.findall(r"(\d+) (\w+)", said.get("delay", "")):
        amounts[unit] += int(number)
    amounts["minute"] += 30 if "half" in said else 0
    exact = amounts["minute"] * 60_000 + amounts["hour"] * HOUR_MS
    days, months = amounts["day"] + amounts["week"] * 7, amounts["month"] + amounts["year"] * 12
    if timedelta(days=days + months * 31, milliseconds=exact) > LATEST:
        raise Refused("that is more than a hundred years from now; name an earlier time")
    if not (days or months):
        return When(at=now_ms + exact) if exact and clock is None else None
    if exact:
        return None
    day = _ahead(now.date(), months) + timedelta(days)
    return When(wall=_wall(datetime.combine(day, clock or now.time())))


def _ahead(day: date, months: int) -> date:
    """The same day so many months later, or the last of that month."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _rule(said: Mapping[str, str], now: datetime) -> str:
    """The rule of what was said, "" if it doesn't repeat."""
    if "nth" in said:
        nth, day = _ORDINALS[said["nth"]], said["nth_day"]
        if nth > 1 and "monthly" not in said:  # "every second Friday", "every third day"
            if day == "day":
                return f"FREQ=DAILY;INTERVAL={nth}"
            weekly = f"every {nth} weeks on {day.title()}"
            monthly = f"every {said['nth']} {day.title()} of the month"
            raise Refused(f"that can be every {nth} weeks or once a month; write `{weekly}` or `{monthly}`")
        if day == "day":
            return f"FREQ=MONTHLY;BYMONTHDAY={nth}"
        return f"FREQ=MONTHLY;BYDAY={nth}{day[:2].upper()}"
    if "monthday" in said:
        number = _ORDINALS.get(said["monthday"]) or int(re.sub(r"\D", "", said["monthday"]))
        every = f";INTERVAL={said['months']}" if int(said.get("months", 1)) > 1 else ""
        return f"FREQ=MONTHLY{every};BYMONTHDAY={number}" if -1 <= number <= 31 and number else ""
    if "yearmonth" in said:
        month = _month(said["yearmonth"])
        date(2024, month, int(said["yearday"]))  # raises ValueError for 31 June
        every = f";INTERVAL={said['years']}" if int(said.get("years", 1)) > 1 else ""
        return f"FREQ=YEARLY{every};BYMONTH={month};BYMONTHDAY={int(said['yearday'])}"
    if "days" in said:
        every = f";INTERVAL={said['weeks']}" if int(said.get("weeks", 1)) > 1 else ""
        if said["days"].startswith("weekday"):
            return f"FREQ=WEEKLY{every};BYDAY=MO,TU,WE,TH,FR"
        found = {_CODES.index(one[:2].upper()) for one in re.findall(_WEEKDAY, said["days"])}
        return f"FREQ=WEEKLY{every};BYDAY={','.join(_CODES[one] for one in sorted(found))}"
    if "part" in said:
        return "FREQ=DAILY"
    if "unit" not in said:
        return ""
    often, unit = int(said.get("often", 1)), said["unit"]
    if unit == "minute":
        if often % 60 or not often:
            raise Refused("a reminder can repeat once an hour at most; name a longer time")
        often, unit = often // 60, "hour"
    if not often:
        raise Refused("a reminder can't repeat at once; name a longer time")
    every = f";INTERVAL={often}" if often > 1 else ""
    on = {
        "week": f";BYDAY={_CODES[now.weekday()]}",
        "month": f";BYMONTHDAY={now.day}",
        "year": f";BYMONTH={now.month};BYMONTHDAY={now.day}",
    }
    frequency = next(name for name, word in _UNITS.items() if word == unit)
    if unit == "week" and "weekday" in said:
        on["week"] = f";BYDAY={said['weekday'][:2].upper()}"
        said.pop("weekday")  # type: ignore[attr-defined]
    return f"FREQ={frequency}{every}{on.get(unit, '')}"


def _month(name: str) -> int:
    return [one.lower() for one in _MONTHS].index(name) + 1


def _first(
    said: Mapping[str, str], clock: time | None, now: datetime, now_ms: int, zone: tzinfo
) -> datetime | None:
    """The first time on the clock that fits a date, a weekday, or no more than a time."""
    at, today = clock or USUAL, now.date()
    if "iso" in said:
        return datetime.combine(date.fromisoformat(said["iso"]), at)
    if "day" in said:
        month = _month(said["month"]) if said["month"].isalpha() else int(said["month"])
        if "year" in said:
            return datetime.combine(date(int(said["year"]), month, int(said["day"])), at)
        for year in range(today.year, today.year + 9):  # 29 February may be eight years away
            try:
                that_year = datetime.combine(date(year, month, int(said["day"])), at)
            except ValueError:
                continue
            if moment(_wall(that_year), zone) > now_ms:
                return that_year
        return None
    if "word" in said:
        ahead = ("today", "tomorrow", "overmorrow").index(said["word"])
        return datetime.combine(today + timedelta(days=ahead), at)
    if "next_unit" in said:
        unit = said["next_unit"]
        if unit == "week" and "weekday" in said:
            ahead = [one.lower() for one in _DAYS].index(said["weekday"]) - today.weekday() + 7
            return datetime.combine(today + timedelta(days=ahead), at)
        day = today + timedelta(weeks=1) if unit == "week" else _ahead(today, 1 if unit == "month" else 12)
        return datetime.combine(day, at)
    if "weekday" in said:
        ahead = ([one.lower() for one in _DAYS].index(said["weekday"]) - today.weekday()) % 7
        that_day = datetime.combine(today + timedelta(days=ahead), at)
        over = moment(_wall(that_day), zone) <= now_ms or (not ahead and said.get("next") == "next")
        return that_day + timedelta(days=7) if over else that_day
    today_at = datetime.combine(today, at)
    return today_at if moment(_wall(today_at), zone) > now_ms else today_at + timedelta(days=1)
