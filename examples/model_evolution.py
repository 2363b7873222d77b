"""A model that changes: new programs read old records, and old programs read new records.

    pip install bucketlog
    python examples/model_evolution.py

Three rules keep JSON records readable. A new field has a default. A renamed field still accepts its
old name, and is written under it while old programs run. Unknown fields are ignored, which is the
default of pydantic.
"""

import os

from pydantic import AliasChoices, BaseModel, Field

import bucketlog

ADDRESS = os.environ.get("BUCKETLOG_BOOTSTRAP", "localhost:9092")


class UserOfLastYear(BaseModel):
    id: int
    mail: str


class User(BaseModel):
    id: int
    email: str = Field(
        validation_alias=AliasChoices("email", "mail"),
        serialization_alias="mail",  # until no old program runs any more
    )
    language: str = "en"


OLD = bucketlog.Topic("users", value=UserOfLastYear)
NEW = bucketlog.Topic("users", value=User)


def main() -> None:
    with bucketlog.connect(ADDRESS) as log:
        log.topics.ensure(NEW, partitions=1)
        with log.producer() as producer:
            producer.send(OLD, UserOfLastYear(id=1, mail="a@example.org"))
            producer.send(NEW, User(id=2, email="b@example.org", language="de"))
        with log.consumer(NEW, start="earliest", until="end") as users:
            for user in users:
                print(f"new program: {user.value.id} {user.value.email} {user.value.language}")
        with log.consumer(OLD, start="earliest", until="end") as old_users:
            for old in old_users:
                print(f"old program: {old.value.id} {old.value.mail}")


if __name__ == "__main__":
    main()
