"""A topic as Parquet files, read from the bucket. Neither a broker nor Redis has to run.

    pip install 'bucketlog[replay]'
    python examples/typed_records.py                                  # writes the topic
    python examples/replay_parquet.py bucketlog-data/bucket lake

The bucket is a folder, file:///folder or s3://bucket/prefix. The files are partitioned as
`partition=N`, with Kafka's columns: key, value, topic, partition, offset, timestamp and so on.
"""

import sys

import bucketlog

TOPIC = "orders"


def main() -> None:
    bucket, target = sys.argv[1:3]
    replay = bucketlog.replay(bucket, TOPIC)
    report = replay.to_parquet(target, partition_by=["partition"], overwrite=True)
    print(f"{report.records} records in {report.files} files")


if __name__ == "__main__":
    main()
