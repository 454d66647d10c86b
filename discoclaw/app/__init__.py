"""The composition root: settings become a running program. `build` makes it, `App` runs it."""

from discoclaw.app.app import App, stop_asked
from discoclaw.app.build import build, now_ms

__all__ = ["App", "build", "now_ms", "stop_asked"]
