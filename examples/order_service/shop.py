"""What the order services share: orders, and the payment service that charges them.

A charge is idempotent: the payment service knows each order by its id. A service may therefore
charge an order again after a crash.
"""

import asyncio
import os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from pydantic import BaseModel

ADDRESS = os.environ.get("BUCKETLOG_BOOTSTRAP", "localhost:9092")
PAYMENTS_URL = os.environ.get("PAYMENTS_URL", "http://localhost:8000/charge")
INSTANCE = os.environ.get("INSTANCE", "order-service-1")
"""The name of this instance of the service: it keeps its partitions while it restarts."""
TIMEOUT_S = 30


class Order(BaseModel):
    id: int
    cents: int


class Receipt(BaseModel):
    order: int
    payment: str


class PaymentError(Exception):
    """The payment service refused, or did not answer."""


def charge(order: Order) -> Receipt:
    """Charge an order. Raises `PaymentError`."""
    request = Request(PAYMENTS_URL, order.model_dump_json().encode())
    try:
        with urlopen(request, timeout=TIMEOUT_S) as response:
            return Receipt(order=order.id, payment=response.read().decode())
    except HTTPError as error:
        raise PaymentError(error.read().decode()) from error
    except OSError as error:
        raise PaymentError(str(error)) from error


async def acharge(order: Order) -> Receipt:
    """The same for asyncio."""
    return await asyncio.to_thread(charge, order)
