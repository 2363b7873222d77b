"""What the process that runs SQL gets, and what it answers. Pure."""

from pydantic import BaseModel, ConfigDict, Field


class QueryRequest(BaseModel):
    """SQL with its limits. `engine_bytes_max` is the memory that DuckDB may use, and `seconds` the
    time after which the process ends."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sql: str
    seconds: int = Field(ge=1)
    threads: int = Field(ge=1)
    engine_bytes_max: int = Field(ge=1)
    rows_max: int = Field(ge=1)
    columns_max: int = Field(ge=1)
    cell_chars_max: int = Field(ge=1)
    answer_bytes_max: int = Field(ge=1)


class QueryAnswer(BaseModel):
    """The first rows of a result. A cell is text, or None for NULL. Names, types and cells may have
    one character more than the limit, and are then to be cut. `is_cut` tells whether rows are
    missing."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    columns: list[tuple[str, str]]
    rows: list[list[str | None]]
    is_cut: bool
