"""What a proof raises where a claim does not hold."""

from typing import Any

Figures = dict[str, Any]


class ShortfallError(Exception):
    """A claim does not hold; `figures` are what was seen."""

    def __init__(self, message: str, figures: Figures) -> None:
        super().__init__(message)
        self.figures = figures
