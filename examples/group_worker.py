"""A worker of a consumer group: all workers share the jobs, and each job is done at least once.

    pip install bucketlog
    python examples/group_worker.py        # in as many terminals as you like

A job counts as done when the worker asks for the next one, so the job of a crashed worker passes to
another. A group that is started again resumes where it stopped. `until="end"` stops the worker when
all jobs are done; leave it out in a service.
"""

import os
import sys

from pydantic import BaseModel

import bucketlog

ADDRESS = os.environ.get("BUCKETLOG_BOOTSTRAP", "localhost:9092")
GROUP = "resizers"


class Job(BaseModel):
    picture: str
    width: int


JOBS = bucketlog.Topic("jobs", value=Job)


def hand_out(log: bucketlog.Log, pictures: list[str]) -> None:
    with log.producer() as producer:
        producer.send_many(JOBS, [Job(picture=picture, width=640) for picture in pictures])


def work(log: bucketlog.Log) -> int:
    """Returns how many jobs this worker has done."""
    done = 0
    with log.consumer(JOBS, group=GROUP, start="earliest", until="end") as consumer:
        for record in consumer:
            print(f"{record.value.picture} resized to {record.value.width}")
            done += 1
    return done


def main() -> None:
    with bucketlog.connect(ADDRESS) as log:
        log.topics.ensure(JOBS, partitions=4)
        hand_out(log, sys.argv[1:] or ["cat.jpg", "dog.jpg", "owl.jpg"])
        print(f"done: {work(log)}, lag: {log.groups.describe(GROUP).lag}")


if __name__ == "__main__":
    main()
