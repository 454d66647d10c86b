from dataclasses import dataclass
import importlib.util
@dataclass(frozen=True)
class Case:
    said: list; kept: list; answers: dict
spec = importlib.util.spec_from_file_location("h", "/tmp/t-n34-offline/heldout.py"); m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m)
CASES = [Case(a, b, {k: v for k, v in c.items() if v != "2"}) for a, b, c in m.HELD]
