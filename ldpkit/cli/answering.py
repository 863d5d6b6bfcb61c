"""Commands of one device: answer, withdraw and budget."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from ldp_client.documents import errors
from ldp_client.documents.errors import AnswerError, InputError, RefusedError, UsageError
from ldp_client.documents.study import Study
from ldp_client.words.text import counted, rounded_up, say, visible
from ldpkit.answer_files import all_columns, answers_from_text, table_answers
from ldpkit.cli.commands import command, require_yes
from ldpkit.cli.output import show, warn
from ldpkit.perturbing import clipped_rows
from schemas.warnings import notes_of, warnings_of

if TYPE_CHECKING:
    from ldp_client import Device
    from ldp_client.device.ledger import Ledger

# What `publish` prints for people, and the address of the document for devices.
LINK = re.compile(r"(https?://.+)/(?:s|v1/studies)/([a-z0-9._-]+)/?(?:\?[^#]*)?(?:#\w+=(.+))?", re.ASCII)


def default_folder() -> str:
    """Return the folder of this user's own device."""
    base = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(base):
        # Ignore a relative path too: each working folder would have a separate device.
        base = os.path.join("~", ".local", "share")
    return os.path.join(base, "ldpkit")


def read_link(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[str, str, str]:
    """Return the collector's base URL, the study's id and the ticket in a study's link, "" for none."""
    parts = LINK.fullmatch(value)
    if parts is None:
        problem = "give the study's link as `ldpkit publish` prints it: https://host/s/ID"
        raise click.BadParameter(problem, ctx, parameter)
    return parts[1], parts[2], parts[3] or ""


link_argument = click.argument("link", callback=read_link)
folder_option = click.option(
    "--folder",
    metavar="DIR",
    default=default_folder,
    help=f"the device's ledger (default {default_folder()})",
)
node_option = click.option(
    "--node",
    multiple=True,
    metavar="ADDRESS",
    help="trust this node of a secure sum, https://host#KEYS; repeat for each node, if you trust it",
)


@command("answer", "answer https://collector.example/s/habits --set hours=8 --max-epsilon 4")
@link_argument
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="QUESTION=VALUE",
    help="answer a question, or a part of a record (QUESTION.FIELD=VALUE); repeat for each. Your shell's "
    "history keeps it, even after withdraw",
)
@click.option("--public", multiple=True, metavar="FIELD=VALUE", help="send it without noise; repeatable")
@click.option("--refuse", multiple=True, metavar="QUESTION", help="prefer not to answer; repeatable")
@click.option("--table", metavar="TABLE.csv", help="answer as a data holder, with this table of records")
@click.option("--max-epsilon", metavar="EPSILON", help="lifetime budget, which the ledger keeps")
@click.option("--raise-budget", is_flag=True, help="let --max-epsilon exceed the ledger's budget")
@click.option("--digest", multiple=True, metavar="HEX", help="accept only studies with this digest")
@click.option("--yes", is_flag=True, help="I consent: do not ask")
@node_option
@folder_option
def answer(
    link: tuple[str, str, str],
    settings: tuple[str, ...],
    public: tuple[str, ...],
    refuse: tuple[str, ...],
    table: str | None,
    max_epsilon: str | None,
    raise_budget: bool,
    digest: tuple[str, ...],
    yes: bool,
    node: tuple[str, ...],
    folder: str,
) -> int:
    """Answer a study once, as one device. LINK is what `publish` or a ticket has for people."""
    from ldp_client import Device

    # 1. Open the device.
    collector, study_id, ticket = link
    ledger = _ledger_in(folder)
    stated = max_epsilon or (ledger and not raise_budget and ledger.budget())
    if not stated:
        raise UsageError(
            "state this device's lifetime budget, over all studies that it ever answers: --max-epsilon E",
            code="answer.no_budget",
        )
    device = Device(
        folder, stated, collector, nodes=node, raise_budget=raise_budget, known_digests=digest or None
    )
    if Fraction(stated) > device.policy.epsilon:
        raise RefusedError(
            f"this device's lifetime budget is {float(device.policy.epsilon):g}, and {stated} is more: pass "
            "--raise-budget if its owner raises it",
            code="answer.budget_is_more",
        )
    if not device.ledger.spent():
        where = visible(os.path.abspath(device.ledger.folder))
        warn(f"note: a new device, in {where}: it does not know answers that were given from another folder")
    try:
        # 2. Check the answers before anything is stored or spent.
        study = device.fetch(study_id)
        answers = _values(study, settings, public, refuse, table)
        if study.channel is not None and study.channel.tickets is not None and not ticket:
            raise RefusedError(
                "the study accepts one report a person: give the ticket that the issuer of tickets knows",
                code="device.no_ticket",
            )
        _check(study, answers)
        # 3. Ask for consent, and answer.
        if not yes:
            _ask_for_consent(study, device.collector, ticket)
        device.consent(study)
        clear = {field.id: answers.pop(field.id) for field in study.public if field.id in answers}
        report = device.answer(study, answers, ticket, public=clear)
    except (
        AnswerError,
        errors.DocumentError,
        InputError,
        RefusedError,
        errors.TransferError,
    ) as error:
        # 4. Send what earlier calls could not, whatever prevents an answer to this study.
        is_waiting = bool(device.ledger.queued())
        if is_waiting:
            warn(
                "reports that wait since an earlier call are sent as they were made: no value or ticket "
                "given now is used. In Python, Device.give_ticket gives a waiting report another ticket"
            )
        has_answered = isinstance(error, errors.AlreadyAnsweredError)
        if not isinstance(error, errors.TransferError) and (is_waiting or has_answered):
            _send(device)
        raise
    print(f"answered {study_id}; report {report}; epsilon left {float(device.epsilon_left):g}", flush=True)
    return _send(device)


def _ledger_in(folder: str) -> Ledger | None:
    """Return the ledger of the device in a folder, None if no device is there."""
    from ldp_client.device.arguments import folder_of
    from ldp_client.device.layout import holds_device
    from ldp_client.device.ledger import Ledger

    path = folder_of(folder)
    return Ledger(path) if holds_device(path) else None


def _values(
    study: Study, settings: Sequence[str], public: Sequence[str], refused: Sequence[str], table: str | None
) -> dict[str, Any]:
    """Return a person's answers in the options, or a data holder's table. Raises InputError."""
    # 1. A data holder has a table, a person has not.
    if (study.respondent == "holder") != (table is not None):
        needed = "people: give --set" if table else "data holders: give --table"
        raise InputError(f"study {study.id} asks {needed}", code="answer.respondent")
    if table is not None:
        return {**table_answers(study, table)}
    # 2. A blank is no refusal.
    texts = split_settings(study, settings, public)
    answers = answers_from_text(study, texts)
    for name, value in answers.items():
        if value is None:
            raise AnswerError.say("core.blank", name)
    # 3. Refusals.
    offered = [question.id for question in study.questions if question.refusal and question.id not in texts]
    for name in refused:
        if name not in offered:
            raise InputError(
                "--refuse: must be a question that offers refusal and is not answered: "
                f"{', '.join(offered) or '–'}",
                code="answer.refuse",
            )
    return {**answers, **dict.fromkeys(refused)}


def split_settings(study: Study, settings: Sequence[str], public: Sequence[str] = ()) -> dict[str, str]:
    """Return {column: text} from NAME=VALUE arguments of --set and --public. Raises InputError.

    The same command, run again, must not send without noise what a newer version no longer protects.
    Therefore public fields have their own option.
    """
    known, fields = all_columns(study), [field.id for field in study.public]
    names = {"--set": [name for name in known if name not in fields], "--public": fields}
    texts: dict[str, str] = {}
    stated = [*[("--set", setting) for setting in settings], *[("--public", setting) for setting in public]]
    for option, setting in stated:
        name, equals, value = setting.partition("=")
        if not equals or name not in names[option]:
            # Do not repeat even the name: it may be a mistyped answer.
            listed = "; ".join(f"{known} {', '.join(of) or '–'}" for known, of in names.items())
            raise InputError(
                f"{option}: use NAME=VALUE with a name of this study: {listed} (sent without noise)",
                code="answer.set_form",
            )
        if name in texts:
            raise InputError(f"{option} {name}: is given twice", code="answer.set_twice")
        texts[name] = value
    return texts


def _check(study: Study, answers: dict[str, Any]) -> None:
    """Reject wrong answers, and warn of surprises, before asking for consent and storing anything.

    Raises AnswerError, InputError.
    """
    from ldp_client.answering import public_values, quantise_answers
    from ldp_client.columns.clipping import is_clipped
    from ldp_client.device.budget import Terms

    quantise_answers(study, Terms(study).mechanisms, answers)
    if study.respondent == "holder":
        if line := clipped_rows(study, answers):
            warn(line)
        return
    for name, value in public_values(study, answers).items():
        warn(say("public.value", field=name, value=visible(value)))
    for question in study.questions:
        if is_clipped(question, answers[question.id]):
            # Often because of a wrong unit.
            warn(
                f"warning: {question.id} is beyond the study's bounds or norm: is its unit right? The "
                "nearest allowed answer would be sent"
            )


def _ask_for_consent(study: Study, collector: str, ticket: str) -> None:
    """Describe what would be sent, and ask. Raises as `require_yes`."""
    from ldp_client.explain import describe

    warnings = [*warnings_of(study), *notes_of(study)]
    if ticket and study.channel is None:
        warnings.append(
            "with your ticket: anyone who kept a record of whose ticket it is can tell whose report that is"
        )
    print("\n".join([*describe(study), f"sent to: {visible(collector)}", *warnings]), flush=True)
    require_yes(False, "sending these answers with this noise")


def _send(device: Device, now: bool = False) -> int:
    """Flush, print what was sent, refused and waits, and return the exit code. now: as in `flush`."""
    flushed = device.flush(now=now)
    print(visible(str(flushed)))
    is_waiting = bool(flushed.waiting + flushed.undeleted)
    if is_waiting or flushed.scheduled:
        warn("reports wait: each `ldpkit answer` or `ldpkit withdraw` tries again")
    return errors.EXIT_REFUSED if flushed.refused else errors.EXIT_NETWORK if is_waiting else 0


@command("withdraw", "withdraw https://collector.example/s/habits")
@link_argument
@click.option(
    "--now",
    is_flag=True,
    help="delete at once, even reports that left together with others: an observer may then tell whose they "
    "were",
)
@node_option
@folder_option
def withdraw(link: tuple[str, str, str], now: bool, node: tuple[str, ...], folder: str) -> int:
    """Take back this device's answers to a study, here and at the collector."""
    from ldp_client import Device

    collector, study_id, _ = link
    unknown = InputError(
        f"the device in {folder} has not answered study {study_id} of this collector: are link and --folder "
        "right?",
        code="device.unknown_report",
    )
    ledger = _ledger_in(folder)
    kept = ledger and ledger.budget()
    if not kept:
        raise unknown
    device = Device(folder, kept, collector, nodes=node)
    try:
        count = device.withdraw(study_id)
    except InputError:
        raise unknown from None
    print(f"withdrew from {study_id}: {counted(count, 'report')} to be deleted", flush=True)
    return _send(device, now)


@command("budget", "budget")
@folder_option
def budget(folder: str) -> None:
    """Show what this device answered, for whom, the epsilon spent, and the reports that wait."""
    from ldp_client.device.disclosures import disclosures_of

    ledger = _ledger_in(folder)
    if ledger is None:
        raise InputError(
            f"{folder} holds no device: nothing was answered from there (is --folder right?)",
            code="budget.no_device",
        )
    lines, total = [], Fraction(0)
    none = "no report is left: withdrawn, and deleted if it had been sent"
    for each in disclosures_of(ledger):
        collector = visible(each.collector) or "no collector yet"
        epsilon = rounded_up(float(each.epsilon))
        counts = [f"{count} {state.replace('_', ' ')}" for state, count in each.reports.items() if count]
        lines += [
            f"{each.study}, version {each.version}, of {collector}: epsilon {epsilon}",
            f"  asked: {', '.join(each.questions)}",
            f"  reports: {', '.join(counts)}" if counts else f"  {none}",
        ]
        for values in each.strata:
            pairs = visible(", ".join(f"{field}={values[field]}" for field in sorted(values)))
            lines.append(f"  the issuer says that you belong to {pairs}: if not, withdraw before it leaves")
        total += each.epsilon
    lines += [f"epsilon spent in all: {rounded_up(float(total))}", f"its lifetime budget: {ledger.budget()}"]
    show(lines)
