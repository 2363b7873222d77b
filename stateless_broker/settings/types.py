"""Value ranges of the broker's settings, as types that pydantic validates."""

from typing import Annotated

from pydantic import Field

MIB = 1024 * 1024

Port = Annotated[int, Field(ge=0, le=65535)]
Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
LongNotNegative = Annotated[int, Field(ge=0, le=2**63 - 1)]
AtLeastMinusOne = Annotated[int, Field(ge=-1)]
Percent = Annotated[int, Field(ge=1, le=100)]
Quantile = Annotated[float, Field(ge=0, lt=1)]
