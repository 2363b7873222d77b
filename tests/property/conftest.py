"""Property tests run the same examples every time, and no clock decides their outcome."""

from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")
