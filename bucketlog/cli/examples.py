"""An example for each command, at the end of its `--help`.

Each line is a command that a reader can copy. A test parses all of them.
"""

from collections.abc import Iterator

import typer
from typer.models import CommandInfo

EXAMPLES: dict[str, tuple[str, ...]] = {
    "dev": ("bucketlog dev --data ./data", "bucketlog dev --brokers 3 --seed flights"),
    "broker list": ("bucketlog broker list -b broker-1:9092",),
    "topic create": ("bucketlog topic create orders -p 6 -c retention.ms=604800000",),
    "topic list": ("bucketlog topic list -o json",),
    "topic describe": ("bucketlog topic describe orders --watch",),
    "topic alter": ("bucketlog topic alter orders --retention 7d --dry-run",),
    "topic add-partitions": ("bucketlog topic add-partitions orders 12 --yes",),
    "topic trim": ("bucketlog topic trim orders --before 2026-01-31T12:00 --dry-run",),
    "topic delete": ("bucketlog topic delete orders --yes",),
    "apply": ("bucketlog apply topics.yaml --dry-run",),
    "produce": (
        "bucketlog produce orders lines.txt",
        "echo 'ann,9.5' | bucketlog produce orders -K ,",
    ),
    "consume": (
        "bucketlog consume orders --from start --until-end -o jsonl",
        "bucketlog consume orders -F '%t %p %o %k %v\\n'",
    ),
    "deadletter list": ("bucketlog deadletter list orders-dead",),
    "deadletter show": ("bucketlog deadletter show orders-dead --reason ValidationError -n 10",),
    "deadletter replay": ("bucketlog deadletter replay orders-dead --from start --dry-run",),
    "schema list": ("bucketlog schema list --prefix orders- --registry-url http://localhost:8081",),
    "schema show": (
        "bucketlog schema show orders-value --version 3",
        "bucketlog schema show --id 17 --references",
    ),
    "schema register": (
        "bucketlog schema register orders-value order.avsc",
        "bucketlog schema register orders-value order.proto -r line.proto=lines:1",
    ),
    "schema check": ("bucketlog schema check orders-value order.avsc",),
    "schema compatibility": (
        "bucketlog schema compatibility orders-value",
        "bucketlog schema compatibility orders-value --set FULL_TRANSITIVE",
    ),
    "schema delete": (
        "bucketlog schema delete orders-value --version 2 --dry-run",
        "bucketlog schema delete orders-value --permanent --yes",
    ),
    "replay": (
        "bucketlog replay s3://bucket/prefix orders --since 7d",
        "bucketlog replay s3://bucket/prefix orders --to ./orders --format parquet",
    ),
    "table reprocess": (
        "bucketlog table reprocess --into lake.db.orders --schema 'id string, amount string'",
    ),
    "table maintain": (
        "bucketlog table maintain --into lake.db.orders --dry-run",
        "bucketlog table maintain --into lake.db.orders --snapshot-age 30d",
    ),
    "table serve": ("bucketlog table serve lake --catalog-property uri=sqlite:///catalog.db",),
    "table run": (
        "bucketlog table run s3://logs --topics orders --schema 'id string' --into lake.db.orders",
        "bucketlog table run s3://logs --topics bids --value-format registry --into lake.db.bids",
        "bucketlog table run s3://b --topics t --schema 'id int' --into lake.db.t --changes upsert",
    ),
    "table run-all": (
        "bucketlog table run-all tables.yaml --check",
        "bucketlog table run-all tables.yaml --follow --metrics-port 9646",
    ),
    "mirror": ("bucketlog mirror --from kafka://kafka:9092 --topics 'orders-*'",),
    "export": ("bucketlog export --to kafka://kafka:9092 --topics 'orders-*' --once",),
    "group list": ("bucketlog group list",),
    "group describe": ("bucketlog group describe billing --watch",),
    "group reset": (
        "bucketlog group reset billing --to 2026-01-31T12:00 --topic orders --dry-run",
    ),
    "group delete": ("bucketlog group delete billing --yes",),
    "transaction list": ("bucketlog transaction list",),
    "transaction describe": ("bucketlog transaction describe billing-1",),
    "transaction abort": ("bucketlog transaction abort billing-1 --yes",),
    "user add": ("bucketlog user add ann --new-password-file password.txt",),
    "user password": ("bucketlog user password ann --new-password-file password.txt",),
    "user list": ("bucketlog user list",),
    "user delete": ("bucketlog user delete ann --yes",),
    "acl add": (
        "bucketlog acl add --allow-principal User:ann --consumer --topic orders --group '*'",
    ),
    "acl list": ("bucketlog acl list --principal User:ann",),
    "acl delete": ("bucketlog acl delete --principal User:ann --dry-run",),
    "acl wait": ("bucketlog acl wait --timeout-seconds 60",),
    "cluster init": ("bucketlog cluster init --add-scram admin --new-password-file password.txt",),
    "cluster info": ("bucketlog cluster info",),
    "cluster health": ("bucketlog cluster health --http http://broker-1:8080",),
    "client list": ("bucketlog client list",),
    "segment ls": ("bucketlog segment ls s3://bucket/prefix --topic orders",),
    "segment facts": ("bucketlog segment facts s3://bucket/prefix -o jsonl",),
    "segment inspect": ("bucketlog segment inspect s3://bucket/prefix KEY",),
    "segment verify": ("bucketlog segment verify s3://bucket/prefix",),
    "segment gc": ("bucketlog segment gc s3://bucket/prefix --dry-run",),
    "locate": ("bucketlog locate s3://bucket/prefix orders 0 42",),
    "doctor": ("bucketlog doctor s3://bucket/prefix localhost:9092",),
    "spark replay": (
        "bucketlog spark replay --bucket s3://bucket/prefix --topics orders --target ./orders",
    ),
    "spark ingest": (
        "bucketlog spark ingest --bucket s3://bucket --topics t --schema 'id int' --parquet out",
    ),
    "bench produce": ("bucketlog bench produce load --create --delete --record-bytes 1000 -s 30",),
    "bench consume": ("bucketlog bench consume load --records 1000000",),
    "bench end-to-end": ("bucketlog bench end-to-end load --create --delete --rate 10MB/s",),
    "cost": ("bucketlog cost s3://bucket/prefix --metrics http://localhost:8080/metrics",),
    "top": (
        "bucketlog top --metrics http://localhost:8080/metrics",
        "bucketlog top --once -o json",
    ),
    "console": ("bucketlog console s3://bucket/prefix --port 9644",),
    "demo": ("bucketlog demo --flights 10000",),
    "config show": ("bucketlog config show --all",),
    "config list": ("bucketlog config list",),
    "config set": ("bucketlog config set bootstrap localhost:9092",),
    "config use": ("bucketlog config use production",),
    "completion": ('eval "$(bucketlog completion bash)"',),
}
"""Lines of a shell, by the words of the command."""


def add_examples(app: typer.Typer) -> None:
    """Put the examples at the end of the help of each command."""
    for path, command in _commands(app, ""):
        lines = EXAMPLES.get(path, ())
        if lines:
            title = "Example:" if len(lines) == 1 else "Examples:"
            # \b keeps the lines as they are
            command.epilog = "\b\n" + "\n".join([title, *(f"  {line}" for line in lines)])


def _commands(app: typer.Typer, path: str) -> Iterator[tuple[str, CommandInfo]]:
    for command in app.registered_commands:
        assert command.name is not None
        yield f"{path}{command.name}", command
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from _commands(group.typer_instance, f"{path}{group.name} ")
