"""What `produce` makes of a line: a record, with the key and headers that flags give to all."""

from collections.abc import Sequence
from dataclasses import dataclass

from bucketlog.cli.options import assignment
from bucketlog.client.lines import Line, json_line, plain_line
from bucketlog.log_format.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class LineFormat:
    """`separator`: text between key and value. `key` and `headers`: of all records."""

    jsonl: bool
    separator: bytes | None
    key: bytes | None
    headers: tuple[tuple[str, str | bytes | None], ...]

    @classmethod
    def of_flags(
        cls, *, jsonl: bool, separator: str | None, key: str | None, headers: Sequence[str]
    ) -> "LineFormat":
        """Raises `ConfigurationError` for flags that do not go together."""
        if jsonl and separator is not None:
            raise ConfigurationError(
                "--jsonl and --key-separator", remedy="jsonl lines carry their keys: leave one out"
            )
        if key is not None and (jsonl or separator is not None):
            raise ConfigurationError(
                f"--key with {'--jsonl' if jsonl else '--key-separator'}",
                remedy="the lines carry their keys: leave one out",
            )
        if separator == "":
            raise ConfigurationError(
                "an empty --key-separator", remedy=r"as in --key-separator '\t'"
            )
        return cls(
            jsonl,
            None if separator is None else separator.replace("\\t", "\t").encode(),
            None if key is None else key.encode(),
            tuple(assignment(text, "--header") for text in headers),
        )

    def record(self, text: bytes) -> Line | None:
        """Parse a line; returns None for an empty line of JSON. Raises `InvalidDataError`."""
        if not self.jsonl:
            line = plain_line(text, self.separator)
        elif text:
            line = json_line(text)
        else:
            return None
        key = line.key if self.key is None else self.key
        return line._replace(key=key, headers=[*line.headers, *self.headers])
