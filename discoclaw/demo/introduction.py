"""What the terminal says when the demo has started: the pages, and what to try on which."""

from collections.abc import Mapping

from discoclaw.program import program
from discoclaw.settings import Settings

_TEXT = """\
Talk with DiscoClaw in your browser. Each page is one place. You own the bot; Sam is somebody else.

{pages}

Worth trying, in this order:
  1. In {general}, say “I prefer tabs over spaces”. It remembers, and says what.
  2. In {other}, ask “What do I prefer?” It knows you there too. When Sam asks that, it knows nothing.
  3. In {dm}, say “I'm allergic to penicillin”. Ask “What do you know about me?” there and in {general}.
  4. In {other}, type “!memory remember My favourite dish is lasagne”, then say “My favourite dish is pizza”.
     It asks you in {dm} which is right.
  5. In {general}, type /memory show, /usage, /attach (a file or a picture), /settings,
     or /hatch start (the bot's personality).

Its memory is in files that you can open and edit: {root}/. On the command line:
  {command} memory list
  {nostr} nostr status   (an encrypted copy, on a relay inside this program)

{model}
Stop with Ctrl-C. The next demo knows you again; `--fresh` forgets."""

_OFFLINE = (
    "The built-in offline model answers: it only repeats what it remembers. "
    "Set ANTHROPIC_API_KEY for a real one."
)


def introduction(urls: Mapping[str, str], settings: Settings) -> str:
    """The introduction; `urls` are the addresses of the pages by their names, as `World.pages` has them."""
    general, other, dm, sam = urls
    width = max(map(len, urls))
    return _TEXT.format(
        pages="\n".join(f"  {name:{width}}  {url}" for name, url in urls.items()),
        general=general,
        other=other,
        dm=dm,
        sam=sam,
        root=settings.memory_dir,
        command=f"DISCOCLAW_DATA_DIR={settings.data_dir} {program()}",
        nostr=f"DISCOCLAW_DATA_DIR={settings.data_dir} NOSTR_RELAYS=embedded {program()}",
        model=_OFFLINE if settings.model_provider == "offline" else f"The model is {settings.model}.",
    )
