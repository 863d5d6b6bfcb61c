"""The command `ldpkit keys`, for the keys with which people publish, read and operate."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import click

from ldp_client.words.text import visible
from ldpkit.cli.client import Client
from ldpkit.cli.commands import DAY, collector_option, command, require_yes, yes_option
from ldpkit.cli.output import show, warn
from ldpkit.cli.studies import show_answer

ROLES = ("publish", "read", "operate")


@command("keys", "keys ann --role read --study habits")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--role", type=click.Choice(ROLES), help="make a key that may publish, read, or do both")
@click.option("--study", multiple=True, metavar="STUDY_ID", help="the new key's only studies; repeatable")
@click.option("--expires", type=DAY, help="the new key's last day, in UTC")
@click.option("--revoke", is_flag=True, help="make the key NAME useless")
@yes_option
@collector_option
def keys(
    name: str | None,
    role: str | None,
    study: tuple[str, ...],
    expires: datetime | None,
    revoke: bool,
    yes: bool,
    collector: Client,
) -> None:
    """List a collector's keys, or make or revoke one. Needs the operator's token.

    A new key is shown once.
    """
    # 1. Check the options.
    if (name is None) == (role is not None or revoke) or (role is not None and revoke):
        raise click.UsageError("give NAME with --role, NAME with --revoke, or neither for a list")
    if role is None and (study or expires):
        raise click.UsageError("--study and --expires go with --role")
    last_day = None if expires is None else expires.date()
    if last_day and last_day < datetime.now(UTC).date():
        raise click.UsageError(f"--expires {last_day}: is over")
    # 2. List, revoke or make.
    if name is None:
        show_answer(collector, "/v1/keys", lambda body: body["keys"], _key_lines)
    elif revoke:
        require_yes(yes, f"revoking the key {name} at {collector.url}")
        collector.send("DELETE", f"/v1/keys/{quote(name, safe='')}", again=False)
        show([f"{name} is revoked"])
    else:
        day = last_day and last_day.isoformat()
        asked = {"name": name, "role": role, "studies": list(study), "expires": day}
        document = {member: value for member, value in asked.items() if value}
        key, warnings = collector.ask("POST", "/v1/keys", _made, document, again=False)
        for line in warnings:
            warn(visible(line))
        show([key])


def _made(body: Any) -> tuple[str, list[str]]:
    """Return a new key and warnings. Raises ValueError for a key as collectors do not make it."""
    key = body["key"]
    if not isinstance(key, str) or not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError
    return key, [str(line) for line in body["warnings"]]


def _key_lines(keys: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for key in keys:
        studies = "all studies" if key["studies"] is None else ", ".join(key["studies"])
        until = "no last day" if key["expires"] is None else f"until {key['expires']}"
        used = "never used" if key["used"] is None else f"used on {key['used']}"
        lines.append("\t".join([key["name"], key["role"], studies, until, used]))
    return lines
