"""The command `ldpkit invite`: it makes tickets to a study, as links and QR codes, and revokes them."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from ldp_client.documents.errors import InputError, LdpkitError, TransferError, UsageError
from ldp_client.words.text import counted, visible
from ldpkit.cli.commands import collector_option, command, json_option, out_option
from ldpkit.cli.links import MOST, new_place, room_for, saying, writer
from ldpkit.cli.output import is_json, show, warn

if TYPE_CHECKING:
    from ldpkit.cli.client import Client

AT_ONCE = 10_000
# Paths before a study's id: of the page for participants, and of the document for devices.
OF_A_STUDY = "/s/", "/v1/studies/"
# Each picture is a file.
MOST_PICTURES = 10_000
LINKS_HELP = "a new file: links, one a line, or *.csv with numbers, tickets and links (default: print them)"


@command("invite", "invite habits --count 500 --out links.csv")
@click.argument("study", metavar="STUDY_ID")
@click.option("--count", type=click.IntRange(1, MOST), metavar="N", help="make so many")
@click.option("--disable", is_flag=True, help="instead, revoke all and admit reports without tickets")
@click.option("--revoke-all", is_flag=True, help="instead, revoke all: people need new ones")
@click.option(
    "--public",
    multiple=True,
    metavar="FIELD=VALUE",
    help="for a public field that tickets carry, once for each: its value in these tickets",
)
@out_option(LINKS_HELP, required=False)
@click.option("--qr", metavar="FOLDER", help="a new folder, with the link of each as an SVG file")
@click.option("--address", metavar="URL", help="where people reach the collector, if not at --collector")
@collector_option
@json_option
def invite(
    study: str,
    count: int | None,
    disable: bool,
    revoke_all: bool,
    public: tuple[str, ...],
    out: str | None,
    qr: str | None,
    address: str | None,
    collector: str,
) -> None:
    """Make tickets to a study, as links and QR codes; from then on only they let a report in."""
    from ldpkit.cli.client import client_of, study_path

    # 1. Check the options.
    if [count is not None, disable, revoke_all].count(True) != 1:
        raise click.UsageError("give one of --count, --disable and --revoke-all")
    if count is None and (public or out or qr or address):
        raise UsageError("--public, --out, --qr and --address go with --count", code="ticket.needs_count")
    if qr and count and count > MOST_PICTURES:
        raise UsageError(
            f"--qr: makes a file of each, of {MOST_PICTURES} at most", code="ticket.too_many_pictures"
        )
    values = _public_values(public)
    client = client_of(collector, "inviting")
    path = f"{study_path(study)}/tickets"
    # 2. Revoke tickets.
    if count is None:
        action = "disable" if disable else "revoke"
        client.ask("POST", f"{path}/{action}", lambda body: body["id"], {})
        said = f"everybody's reports to {study} are let in"
        show(
            [said if disable else f"only new tickets let a report to {study} in"],
            {"study": study, "done": True},
        )
        return
    # 3. Or make them, and write each where only its owner reads it.
    link = f"{_base_of_links(address or client.url, study)}/s/{study}#ticket="
    if qr:
        # Import it first: without it, the tickets would be made but not drawn.
        import segno  # noqa: F401
    found = {"study": study, "tickets": count, "done": True, "links": None, "file": out, "folder": qr}
    # With --json, the links are part of the one JSON object on standard output.
    kept = io.StringIO() if is_json() and not out else None
    try:
        with new_place(out, qr, room_for(link, count, out or "")) as file:
            write = writer(file if kept is None else kept, out or "", qr, link)
            _make_all(client, path, study, count, values, write)
    finally:
        # No other copy exists, so show the tickets made before an error too.
        if kept is not None and kept.tell():
            links = kept.getvalue().splitlines()
            _show_all(study, {**found, "tickets": len(links), "links": links})
    if is_json() and kept is None:
        show([], found)
    warn(f"made {counted(count, 'ticket')} to {study} at {client.url}; they are kept nowhere else")


def _public_values(settings: Sequence[str]) -> dict[str, str]:
    """Return the values that --public states, by field. Raises UsageError."""
    values: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name in values:
            raise UsageError(
                f"--public {name[:64]}: must be FIELD=VALUE, once for each field", code="ticket.wrong_public"
            )
        values[name] = value
    return values


def _base_of_links(address: str, study_id: str) -> str:
    """Return the base URL of links, checked before tickets are made. Raises UsageError."""
    from ldp_client.device.arguments import LOOPBACK
    from ldpkit.cli.client import check_form

    check_form(address)
    page, parts = address.rstrip("/"), urlsplit(address)
    # The path may belong to the collector: a proxy can serve it below a path such as /s/panel.
    if page.endswith(tuple(place + study_id for place in OF_A_STUDY)):
        # `ldpkit publish` prints this address; links based on it would be broken.
        raise UsageError(
            f"{page} is a study's address: name the collector's own, without /s/ID",
            code="ticket.study_address",
        )
    if parts.hostname in LOOPBACK:
        warn(f"links to {page} work only on this machine: --address gives the URL for other people")
    elif parts.scheme == "http":
        warn(f"links to {page} send reports unencrypted: use https://")
    return page


def _show_all(study: str, found: dict[str, Any]) -> None:
    """Print links that are in no file. Raises InputError if standard output cannot be written."""
    try:
        with saying("standard output"):
            show([], found)
            sys.stdout.flush()
    except (OSError, InputError):
        _say_what_undoes(study, 0)
        raise


def _say_what_undoes(study_id: str, done: int) -> None:
    warn(
        f"{counted(done, 'ticket')} written; others may have been made and lost. `ldpkit invite {study_id} "
        "--disable` admits all reports again; after --revoke-all, only new ones are valid"
    )


def _make_all(
    client: Client,
    path: str,
    study_id: str,
    count: int,
    values: dict[str, str],
    write: Callable[[list[str]], None],
) -> None:
    """Make the tickets and write them, AT_ONCE at a time. Raises the collector's refusals."""
    from ldpkit.cli.client import RefusalError

    public = [{"field": name, "value": values[name]} for name in sorted(values)]
    done = 0
    try:
        while done < count:
            asked = min(AT_ONCE, count - done)
            tickets, warnings = client.ask(
                "POST", path, _made, {"count": asked, "public": public}, again=False
            )
            if len(tickets) != asked:
                raise TransferError(
                    f"{client.url} made {len(tickets)} tickets instead of {asked}",
                    code="server.answer_not_json",
                )
            for line in warnings if not done else ():
                warn(visible(line))
            write(tickets)
            done += len(tickets)
    except RefusalError:
        warn(f"{counted(done, 'ticket')} written; the others were not made")
        raise
    except (LdpkitError, OSError):
        _say_what_undoes(study_id, done)
        raise


def _made(body: Any) -> tuple[list[str], list[str]]:
    """Return made tickets and warnings. Raises ValueError for what cannot be in a link."""
    tickets = [str(ticket) for ticket in body["tickets"]]
    if not all(ticket.isascii() and ticket.replace("-", "").replace("_", "").isalnum() for ticket in tickets):
        raise ValueError
    return tickets, [str(line) for line in body["warnings"]]
