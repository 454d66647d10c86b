"""The Python that runs this, and the packages that this configuration needs, in the versions allowed."""

import platform
from collections.abc import AsyncIterator, Iterator
from importlib import metadata

from packaging.requirements import Requirement

from discoclaw import __version__
from discoclaw.app.finding import config_of
from discoclaw.core.health import Finding
from discoclaw.memory.stores import POSTGRES
from discoclaw.settings import Settings

NAME = "discoclaw"
EXTRAS = ("postgres", "vectors", "local-vectors")
"""The optional parts that settings may ask for, the smaller ones first."""


async def program(settings: Settings | None) -> AsyncIterator[Finding]:
    """Python, and the packages. Without settings, those that every configuration needs."""
    yield _python()
    extras = _extras(settings) if settings is not None else frozenset()
    try:
        wanted = metadata.requires(NAME) or []
    except metadata.PackageNotFoundError:
        yield Finding(
            "packages",
            "unknown",
            "DiscoClaw isn't installed as a package here, so nobody says which packages it needs",
            "install it with `pip install .`",
        )
        return
    needed = [one for one in map(Requirement, wanted) if any(_applies(one, name) for name in ("", *extras))]
    wrong = list(_wrong(needed))
    for fault in wrong:
        yield fault
    if not wrong:
        more = f", with {', '.join(sorted(extras))}" if extras else ""
        yield Finding(
            "packages", "good", f"all {len(needed)} requirements of discoclaw {__version__} are met{more}"
        )


def _python() -> Finding:
    version = platform.python_version()
    try:
        wanted = metadata.metadata(NAME)["Requires-Python"] or ""
    except metadata.PackageNotFoundError:
        wanted = ""
    if wanted and not Requirement(f"python{wanted}").specifier.contains(version, prereleases=True):
        return Finding(
            "Python", "bad", f"this is Python {version}, and {wanted} is needed", "install a newer Python"
        )
    return Finding("Python", "good", f"Python {version} on {platform.system()}")


def _extras(settings: Settings) -> frozenset[str]:
    """The optional parts of the package that the settings need."""
    wanted = set()
    if settings.store.get_secret_value().startswith(POSTGRES):
        wanted.add("postgres")
    provider = settings.embedding_provider.strip().lower()
    if provider == "local":
        wanted.add("local-vectors")
    elif provider or (settings.embedding_auto and config_of(settings).openai_key is not None):
        wanted.add("vectors")
    return frozenset(wanted)


def _wrong(needed: list[Requirement]) -> Iterator[Finding]:
    for one in needed:
        try:
            version = metadata.version(one.name)
        except metadata.PackageNotFoundError:
            extra = None if _applies(one, "") else next(name for name in EXTRAS if _applies(one, name))
            install = f"'{NAME}[{extra}]'" if extra is not None else f"'{one.name}{one.specifier}'"
            yield Finding("packages", "bad", f"{one.name} is not installed", f"run: pip install {install}")
            continue
        if not one.specifier.contains(version, prereleases=True):
            why = f"{one.name} is {version}, and {one.specifier} is needed"
            yield Finding("packages", "bad", why, f"run: pip install '{one.name}{one.specifier}'")


def _applies(one: Requirement, extra: str) -> bool:
    return one.marker is None or one.marker.evaluate({"extra": extra})
