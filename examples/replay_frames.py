"""A topic as data frames, read from the bucket. Neither a broker nor Redis has to run.

    pip install 'bucketlog[pandas,polars]'
    python examples/typed_records.py                                  # writes the topic
    python examples/replay_frames.py bucketlog-data/bucket

The bucket is a folder, file:///folder or s3://bucket/prefix. `since="7d"` or `offsets={0: 100}`
would read a part of the topic.
"""

import sys

from pydantic import BaseModel

import bucketlog


class Order(BaseModel):
    id: str
    amount: float


ORDERS = bucketlog.Topic("orders", value=Order, key=str)


def main() -> None:
    bucket = sys.argv[1]
    replay = bucketlog.replay(bucket, ORDERS)
    print(f"pandas: {len(replay.to_pandas())} rows")
    frame = replay.to_polars()  # _partition, _offset, _timestamp, _key, id, amount
    print(f"polars: {frame.height} rows, {frame['amount'].sum()} in all")
    amount = sum(record.value.amount for record in replay)  # typed, as a consumer gives them
    print(f"amount: {amount}")


if __name__ == "__main__":
    main()
