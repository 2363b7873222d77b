"""A YAML file that is checked strictly.

Invariants: a key appears once, and every error names its line. Scalars are texts, as they are
written, also `on`, `010` and `1:30`. Aliases are refused, because a small file with aliases may
mean an enormous one.
"""

from typing import Any

import yaml

from bucketlog.log_format.errors import ConfigurationError

FILE_BYTES_MAX = 4 * 1024 * 1024
NESTED_MAX = 100
"""Limit of the depth of nested lists and dicts."""
NODES_MAX = 500_000
"""Limit of the number of texts, lists and dicts. The limit bounds the time that PyYAML takes."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The compiled loader, if PyYAML has it. The compiled loader is ten times as fast."""
_NULL_TAG = "tag:yaml.org,2002:null"


def _line(mark: "Any | None") -> int:
    """Return the line of a mark of PyYAML, which counts from 0."""
    return mark.line + 1 if mark is not None else 1


class YamlDocument:
    """YAML as dicts, lists and texts, and the line of each of them by its path."""

    def __init__(self, source: str, data: bytes, remedy: str) -> None:
        """`source` is the name of the file in errors, and `remedy` is the remedy of each error.
        Raises `ConfigurationError`."""
        self._source = source
        self._remedy = remedy
        self.lines: dict[tuple[str | int, ...], int] = {}
        text = self._text(data)
        try:
            depth = nodes = 0
            for event in yaml.parse(text, Loader=_LOADER):
                if isinstance(event, yaml.AliasEvent):
                    raise self.error(_line(event.start_mark), "aliases (*name) are refused")
                if isinstance(event, yaml.CollectionStartEvent):
                    depth += 1
                elif isinstance(event, yaml.CollectionEndEvent):
                    depth -= 1
                if depth > NESTED_MAX:
                    raise self.error(
                        _line(event.start_mark), f"nested more than {NESTED_MAX} levels deep"
                    )
                nodes += isinstance(event, yaml.NodeEvent)
                if nodes > NODES_MAX:
                    raise self.error(
                        _line(event.start_mark), f"more than {NODES_MAX:,} keys and values"
                    )
            node = yaml.compose(text, Loader=_LOADER)
            self.data = None if node is None else self._value(node, ())
        except yaml.YAMLError as error:
            said = getattr(error, "problem", None) or str(error).splitlines()[0]
            line = _line(getattr(error, "problem_mark", None))
            raise self.error(line, f"no YAML: {said}") from error

    def _text(self, data: bytes) -> str:
        if len(data) > FILE_BYTES_MAX:
            raise ConfigurationError(
                f"{self._source} has more than {FILE_BYTES_MAX} bytes",
                remedy="split it into several files",
            )
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise self.error(line, "no UTF-8") from None

    def _value(self, node: yaml.Node, path: tuple[str | int, ...]) -> Any:
        self.lines.setdefault(path, _line(node.start_mark))
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, (*path, at)) for at, item in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return None if node.tag == _NULL_TAG else node.value
        found: dict[str, Any] = {}
        for key, value in node.value:
            line = _line(key.start_mark)
            if not isinstance(key, yaml.ScalarNode):
                raise self.error(line, "a key must be a word")
            if key.value in found:
                raise self.error(line, f"{key.value!r} appears twice")
            self.lines[*path, key.value] = line
            found[key.value] = self._value(value, (*path, key.value))
        return found

    def line(self, path: tuple[str | int, ...]) -> int:
        """Return the line of the part at `path`, or of the nearest part around it."""
        while path not in self.lines:
            path = path[:-1]
            if not path:
                return self.lines.get((), 1)
        return self.lines[path]

    def error(self, line: int, message: str) -> ConfigurationError:
        return ConfigurationError(f"{self._source}, line {line}: {message}", remedy=self._remedy)
