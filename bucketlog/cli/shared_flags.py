"""Flags that several commands share: added to a command's signature, where Typer finds them."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def signature_with(
    run: Callable[..., Any],
    command: Callable[..., Any],
    flags: Mapping[str, Any],
    defaults: object,
    *,
    replaced: str | None = None,
) -> None:
    """Give `run` the signature of `command` and the flags; `defaults` has an attribute for each.
    The parameter `replaced` of `command` is left out: `run` makes it of the flags."""
    before = inspect.signature(command, eval_str=True)
    parameters = [each for each in before.parameters.values() if each.name != replaced]
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(defaults, name),
            annotation=annotation,
        )
        for name, annotation in flags.items()
    ]
    signature = before.replace(parameters=[*parameters, *added])  # Typer reads it, and the
    run.__signature__ = signature  # type: ignore[attr-defined]  # mypy does not know it
    run.__annotations__ = {  # annotations
        **{each.name: each.annotation for each in parameters},
        **flags,
        "return": before.return_annotation,
    }
