"""How often properties are tried: the same few times in every run, and at length, each time anew, with
HYPOTHESIS_PROFILE=thorough."""

import os

from hypothesis import settings

settings.register_profile("suite", max_examples=25, derandomize=True)
settings.register_profile("thorough", max_examples=500, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))
