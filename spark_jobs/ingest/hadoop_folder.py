"""The folder of a lake by Hadoop's file systems, which are those that Spark writes with."""

from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FoundFile(NamedTuple):
    """`name` is relative to the folder that was listed."""

    name: str
    size_bytes: int


class HadoopFolder:
    """Names are relative to `url`. Raises `Py4JJavaError` for what a file system refuses. May be
    used by several threads at once."""

    def __init__(self, spark: "SparkSession", url: str) -> None:
        gateway: Any = spark
        self._path = gateway._jvm.org.apache.hadoop.fs.Path
        self.url = url.rstrip("/")
        self._system = self._path(f"{self.url}/").getFileSystem(
            gateway._jsparkSession.sessionState().newHadoopConf()
        )

    def __truediv__(self, name: str) -> str:
        return f"{self.url}/{name}"

    def names(self, folder: str = "") -> list[str]:
        """Of files and folders right within it; empty where it is not there."""
        path = self._path(self / folder if folder else f"{self.url}/")
        if not self._system.exists(path):
            return []
        return sorted(status.getPath().getName() for status in self._system.listStatus(path))

    def files(self, folder: str) -> list[FoundFile]:
        """All below it, but what somebody removes meanwhile."""
        found = []
        path = self._path(self / folder)
        root = self._system.makeQualified(path).toUri().getPath().rstrip("/") + "/"
        try:
            statuses = self._system.listFiles(path, True)
            while statuses.hasNext():
                status = statuses.next()
                name = status.getPath().toUri().getPath().removeprefix(root)
                found.append(FoundFile(name, status.getLen()))
        except Py4JJavaError as error:
            if not _is_not_there(error):
                raise
        return sorted(found)

    def size(self, name: str) -> int | None:
        """Return the size of a file; None if it does not exist."""
        try:
            return int(self._system.getFileStatus(self._path(self / name)).getLen())
        except Py4JJavaError as error:
            if _is_not_there(error):
                return None
            raise

    def make_folder(self, name: str) -> None:
        self._system.mkdirs(self._path(self / name))

    def rename(self, name: str, to: str) -> None:
        """The folder of `to` is there. What a file system answers differs: look what is there."""
        try:
            self._system.rename(self._path(self / name), self._path(self / to))
        except Py4JJavaError as error:
            if not _is_not_there(error) and not _is_taken(error):
                raise

    def delete(self, name: str) -> None:
        """A folder with all in it; what is not there is no error."""
        self._system.delete(self._path(self / name), True)


def _is_not_there(error: Py4JJavaError) -> bool:
    return "java.io.FileNotFoundException" in _class_of(error)


def _is_taken(error: Py4JJavaError) -> bool:
    return "FileAlreadyExistsException" in _class_of(error)


def _class_of(error: Py4JJavaError) -> str:
    return str(error.java_exception.getClass().getName())
