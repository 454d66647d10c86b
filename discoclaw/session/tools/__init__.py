"""The memory tools a model may call while it answers: one file for each topic, and a table of them all.

To add a tool, write its input shape and its function in one of these files (or a new one), and add it to that
file's `TOOLS`, with `more` if a model that reads little at once can do without it.
"""

from discoclaw.session.tools import change, history, personas, search
from discoclaw.session.tools.base import Toolbox

ALL = Toolbox((*search.TOOLS, *change.TOOLS, *personas.TOOLS, *history.TOOLS))
NONE = Toolbox(())
"""For a bot whose tools are switched off."""
