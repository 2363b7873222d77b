"""`bucketlog cluster`: init, info, health."""

from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.cli.health import health_of
from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, OutputFormat
from bucketlog.cli.security import connected, secured
from bucketlog.cli.user import Iterations, NewPasswordFile, new_password
from bucketlog.client.mechanisms import (
    DEFAULT_ITERATIONS,
    DEFAULT_MECHANISM,
    CredentialMechanism,
)
from bucketlog.log_format.extras import check_installed
from bucketlog.terminal import EXIT_FAILED, EXIT_OK, Output, note, print_rows, say, say_json

if TYPE_CHECKING:
    from bucketlog.stateless_broker.settings.broker import BrokerSettings

app = typer.Typer(
    help="Prepare a cluster, show its brokers, and check its health.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("init")
def init(
    add_scram: Annotated[
        str,
        typer.Option("--add-scram", metavar="USER", help="User to add as the first administrator."),
    ],
    new_password_file: NewPasswordFile = None,
    credential: Annotated[
        CredentialMechanism,
        typer.Option("--credential", help="The SASL mechanism of the password."),
    ] = DEFAULT_MECHANISM,
    iterations: Iterations = DEFAULT_ITERATIONS,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the password if the user has one.")
    ] = False,
) -> None:
    """Add the first user to a cluster, with the settings of its brokers (BUCKETLOG_*).

    No broker has to run. Running brokers get the new user, too.
    """
    check_installed("broker")
    import asyncio

    from bucketlog.metadata.scram_credentials import ScramMechanism
    from bucketlog.stateless_broker.process.first_user import NewUser, add_user, check_settings
    from bucketlog.stateless_broker.process.start_up import load_settings

    settings = load_settings()
    check_settings(settings, iterations)
    password = new_password(add_scram, new_password_file)
    user = NewUser(add_scram, password, ScramMechanism(credential), iterations, replace)
    cluster_id = asyncio.run(add_user(settings, user))
    note(f"user {add_scram} is added to cluster {cluster_id}, with {credential}")
    _advise(settings, f"User:{add_scram}")


@app.command("info")
@secured
def info(bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, output: OutputFormat = Output.TABLE) -> None:
    """Show the cluster's id, brokers, topics, groups and stored bytes."""
    with connected(bootstrap) as log:
        details = log.cluster.describe()
        topics = log.cluster.topics()
        sizes = log.cluster.partition_bytes()
        groups = log.groups.list()
    controller = next((each.node_id for each in details.brokers if each.is_controller), None)
    shown = {
        "cluster_id": details.cluster_id,
        "controller": controller,
        "brokers": len(details.brokers),
        "zones": len({each.zone for each in details.brokers}),
        "topics": len(topics),
        "partitions": sum(topic.partitions for topic in topics),
        "groups": len(groups),
        "bytes": None if sizes is None else sum(sizes.values()),
    }
    if output is not Output.TABLE:
        print_rows([shown], (), Output.JSONL)
        return
    for name, value in shown.items():
        text = f"{value:,}" if isinstance(value, int) else value or "-"
        say(f"{name.replace('_', ' '):<16}{text}")


@app.command("health")
@secured
def health(
    http: Annotated[
        list[str] | None,
        typer.Option(
            "--http", metavar="URL", help="HTTP endpoint of a broker, for /readyz; repeatable."
        ),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> int:
    """Say in one sentence whether the cluster works, and what to do if not.

    Exit code 1 if it does not work."""
    with connected(bootstrap) as log:
        found = health_of(log, http or ())
    if output is Output.TABLE:
        say(found.sentence())
    else:
        say_json(found.as_json())
    return EXIT_FAILED if found.problems else EXIT_OK


def _advise(settings: "BrokerSettings", principal: str) -> None:
    if not settings.authorization:
        note(
            "every client may do everything: set BUCKETLOG_AUTHORIZATION=true and "
            f"BUCKETLOG_SUPER_USERS={principal} at all brokers to restrict others"
        )
    elif principal not in settings.super_user_names:
        note(
            f"{principal} has only the rights that ACLs give: add it to BUCKETLOG_SUPER_USERS at "
            "all brokers"
        )
