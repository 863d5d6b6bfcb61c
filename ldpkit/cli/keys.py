"""The commands `ldpkit keys`, for the keys with which people publish, read and operate."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import click

from ldp_client.documents.errors import InputError, UsageError
from ldp_client.words.text import visible
from ldpkit.cli.commands import DAY, collector_option, group, json_option, require_yes, yes_option
from ldpkit.cli.output import show, warn
from ldpkit.cli.studies import columns

ROLES = ("publish", "read", "operate")


@group("keys")
def keys() -> None:
    """List, make and revoke the keys with which people publish, read and operate."""


@keys.command("list", example="keys list")
@collector_option
@json_option
def list_keys(collector: str) -> None:
    """List keys: names, roles, studies, last days and last uses."""
    from ldpkit.cli.client import client_of

    client = client_of(collector, "a list of keys")
    found, lines = client.ask("GET", "/v1/keys", _listed)
    show(map(columns, lines), found)


def _listed(body: Any) -> tuple[list[Mapping[str, Any]], list[str]]:
    return body["keys"], [_in_one_line(key) for key in body["keys"]]


@keys.command("add", example="keys add ann --role read --study habits")
@click.argument("name", metavar="NAME")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    required=True,
    help="publish studies, read exports and pages, or operate: both",
)
@click.option(
    "--study", multiple=True, metavar="STUDY_ID", help="good for this study only, published or not; repeat it"
)
@click.option("--expires", type=DAY, help="its last day, in UTC")
@collector_option
@json_option
def add(name: str, role: str, study: tuple[str, ...], expires: date | None, collector: str) -> None:
    """Make a key and show it, once; needs the operator's token."""
    from ldpkit.cli.client import client_of

    if expires is not None and expires < datetime.now(UTC).date():
        raise UsageError(f"--expires {expires}: is over", code="ticket.expired")
    client = client_of(collector, "making a key")
    last_day = None if expires is None else expires.isoformat()
    asked = {"name": name, "role": role, "studies": list(study) or None, "expires": last_day}
    document = {member: value for member, value in asked.items() if value is not None}
    key, warnings = client.ask(
        "POST",
        "/v1/keys",
        lambda body: (_word(body["key"]), [str(line) for line in body["warnings"]]),
        document,
        again=False,
    )
    for line in warnings:
        warn(visible(line))
    try:
        show([key], {**asked, "key": key})
        sys.stdout.flush()
    except OSError:
        # The key is shown only once.
        client.send("DELETE", f"/v1/keys/{name}", again=False)
        warn(f"the key {visible(name)} could not be printed: it was revoked")
        raise


def _word(key: Any) -> str:
    """Return a key as collectors make them. Raises ValueError."""
    if not isinstance(key, str) or not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError
    return key


@keys.command("revoke", example="keys revoke ann --yes")
@click.argument("name", metavar="NAME")
@yes_option
@collector_option
@json_option
def revoke(name: str, yes: bool, collector: str) -> None:
    """Make a key useless; needs the operator's token."""
    from ldpkit.cli.client import client_of

    client = client_of(collector, "revoking a key")
    known = {key["name"]: (key, line) for key, line in zip(*client.ask("GET", "/v1/keys", _listed))}
    if name not in known:
        raise InputError(f"there is no key {name[:64]!r} at {client.url}", code="keys.unknown_name")
    found, line = known[name]
    in_words = line.replace("\t", ", ")
    require_yes(yes, f"revoking {in_words} at {client.url}")
    client.send("DELETE", f"/v1/keys/{name}", again=False)
    show([f"{name} is revoked"], {**found, "done": True})


def _in_one_line(key: Mapping[str, Any]) -> str:
    studies = "all studies" if key["studies"] is None else ", ".join(key["studies"])
    until = "no last day" if key["expires"] is None else f"until {key['expires']}"
    used = "never used" if key["used"] is None else f"used on {key['used']}"
    return "\t".join([key["name"], key["role"], studies, until, used])
