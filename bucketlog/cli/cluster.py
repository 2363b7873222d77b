"""`bucketlog cluster`: init."""

from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.cli.user import Iterations, NewPasswordFile, new_password
from bucketlog.client.mechanisms import (
    DEFAULT_ITERATIONS,
    DEFAULT_MECHANISM,
    CredentialMechanism,
)
from bucketlog.log_format.extras import check_installed
from bucketlog.terminal import note

if TYPE_CHECKING:
    from bucketlog.stateless_broker.settings import BrokerSettings

app = typer.Typer(
    help="Prepare a cluster before its first broker runs.",
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
