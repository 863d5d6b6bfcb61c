"""The subcommands of one person's own device: `ldpkit answer` and `ldpkit withdraw`."""

import argparse
import os
import sys
from typing import Any

from ldp_client.commands.output import add_output, show
from ldp_client.commands.parsers import Subparsers, add_command
from ldp_client.device.device import Device
from ldp_client.device.verdicts import Flushed
from ldp_client.documents.errors import (
    EXIT_NETWORK,
    EXIT_REFUSED,
    AlreadyAnsweredError,
    AnswerError,
    DocumentError,
    InputError,
    RefusedError,
    StudyError,
    TransferError,
    UsageError,
)
from ldp_client.documents.rational import Rational
from ldp_client.documents.study import Study
from ldp_client.words.text import say, visible
from ldpkit.cli.holder import check_tables


def add_device(subparsers: Subparsers) -> None:
    """Register answer and withdraw."""
    example = "answer http://127.0.0.1:8000/v1/studies/habits --set hours=8 --max-epsilon 4"
    answer = add_command(subparsers, "answer", say("cli.help.answer"), example)
    _add_common(answer)
    answer.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="QUESTION=VALUE",
        dest="answers",
        help=say("cli.help.set"),
    )
    answer.add_argument(
        "--public", action="append", default=[], metavar="FIELD=VALUE", help=say("cli.help.public")
    )
    answer.add_argument(
        "--refuse", action="append", default=[], metavar="QUESTION", help=say("cli.help.refuse")
    )
    answer.add_argument("--table", default="", metavar="FILE", help=say("cli.help.table"))
    answer.add_argument("--max-epsilon", metavar="EPSILON", help=say("cli.help.max_epsilon"))
    answer.add_argument("--raise-budget", action="store_true", help=say("cli.help.raise_budget"))
    answer.add_argument(
        "--digest", action="append", default=[], metavar="HEX", help=say("cli.help.digest_only")
    )
    answer.add_argument("--ticket", default="", help=say("cli.help.ticket"))
    answer.add_argument("--yes", action="store_true", help=say("cli.help.yes"))
    answer.set_defaults(run=run_answer)

    text = say("cli.help.withdraw")
    withdraw = add_command(subparsers, "withdraw", text, "withdraw http://127.0.0.1:8000/v1/studies/habits")
    _add_common(withdraw)
    withdraw.add_argument("--now", action="store_true", help=say("cli.help.delete_now"))
    withdraw.set_defaults(run=run_withdraw)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study_url", metavar="STUDY_URL", help="https://host/v1/studies/ID")
    parser.add_argument(
        "--trusted-signer", action="append", default=[], metavar="PEM", help=say("cli.help.trusted_signer")
    )
    parser.add_argument(
        "--folder",
        type=expanded_folder,
        default=default_folder(),
        help=say("cli.help.folder"),
    )
    parser.add_argument(
        "--node",
        action="append",
        default=[],
        metavar="ADDRESS",
        help=say("cli.help.node"),
    )
    add_output(parser)


def default_folder() -> str:
    """Return the folder of this user's own device."""
    base = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(base):
        # Ignore a relative path too: each working folder would have a separate device.
        base = os.path.join("~", ".local", "share")
    return os.path.join(base, "ldpkit")


def expanded_folder(given: str) -> str:
    """Expand the ~ of a folder, also of the default: a shell leaves it as it is in --folder=~/device.

    Raises argparse.ArgumentTypeError if ~ names no home folder.
    """
    from ldp_client.device.arguments import folder_of

    try:
        return folder_of(given)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run_answer(arguments: argparse.Namespace) -> int:
    """ldpkit answer STUDY_URL --set question=value …, or --table FILE"""
    from ldp_client.device.device import Device
    from ldp_client.device.requests import split_study_url

    if arguments.json and not arguments.yes:
        raise UsageError.say("cli.json_asks_nobody")
    collector, study_id = split_study_url(arguments.study_url)
    _refuse_folder_of_others(arguments.folder)
    device = Device(
        arguments.folder,
        _stated_budget(arguments),
        collector,
        signing_keys=arguments.trusted_signer or None,
        nodes=arguments.node,
        known_digests=arguments.digest or None,
        raise_budget=arguments.raise_budget,
    )
    if not device.ledger.spent():
        print(visible(say("cli.new_device", folder=os.path.abspath(arguments.folder))), file=sys.stderr)
    try:
        report = _answer(device, study_id, arguments)
    except TransferError:
        _tell_waiting(device, study_id)
        raise
    except (AnswerError, DocumentError, InputError, RefusedError) as error:
        is_answered = isinstance(error, AlreadyAnsweredError)
        _send_earlier(device, study_id, arguments, is_answered)
        raise
    left = float(device.epsilon_left)
    line = say("cli.answered", study=study_id, report=report, left=left)
    return _show_sent(arguments, line, {"study": study_id, "report": report, "epsilon_left": left}, device)


def _stated_budget(arguments: argparse.Namespace) -> str:
    """Return the lifetime budget: the stated budget, or else the ledger's.

    Raises UsageError without either. Raises RefusedError if the stated budget exceeds the ledger's, except
    with --raise-budget.
    """
    kept = _kept_budget(arguments.folder)
    stated: str | None = arguments.max_epsilon
    if stated is None:
        if kept is None or arguments.raise_budget:
            raise UsageError.say("cli.no_budget")
        return kept
    if kept is not None and not arguments.raise_budget and _is_more(stated, kept):
        raise RefusedError.say("cli.budget.more", kept=kept, stated=stated)
    return stated


def _kept_budget(folder: str) -> str | None:
    from ldp_client.device.layout import holds_device
    from ldp_client.device.ledger import Ledger

    return Ledger(folder).budget() if holds_device(folder) else None


def _is_more(stated: str, kept: str) -> bool:
    """Return True if the stated budget is larger. The device rejects malformed budgets later."""
    try:
        return Rational.parse(kept) < Rational.parse(stated)
    except ValueError:
        return False


def _send_earlier(device: Device, study_id: str, arguments: argparse.Namespace, is_answered: bool) -> None:
    """Send reports that earlier calls could not, whatever prevents an answer to this study."""
    _tell_waiting(device, study_id)
    if arguments.ticket and is_answered:
        print(say("cli.ticket_unused", study=study_id), file=sys.stderr)
    if device.ledger.queued() or is_answered:
        print(_sent(_flush(device)), file=sys.stderr if arguments.json else sys.stdout)


def _answer(device: Device, study_id: str, arguments: argparse.Namespace) -> str:
    """Fetch the study, ask for consent, answer, and return the report's id. Raises LdpkitError."""
    study = device.fetch(study_id)
    answers = _answers(study, arguments)
    if study.channel is not None and study.channel.tickets is not None and not arguments.ticket:
        # Nothing is spent on a report that could never leave.
        raise RefusedError.say("device.no_ticket")
    if study.respondent == "holder":
        check_tables(study, answers)
    else:
        _check_answers(study, answers)
    if not arguments.yes:
        _ask_for_consent(study, device.collector)
    device.consent(study)
    return device.answer(study, answers, arguments.ticket)


def _tell_waiting(device: Device, study_id: str) -> None:
    """Print that queued reports are sent with their original content, whatever is given now."""
    from ldp_client.documents.report import Report

    for queued in device.ledger.queued():
        if queued.study == study_id and queued.origin == device.ledger.origin and queued.body[:1] == "{":
            print(say("cli.waits_as_made", report=queued.report_id), file=sys.stderr)
            _tell_public(Report.from_json(queued.body).public, "public.waiting")


def _answers(study: Study, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the answers in the options: a data holder's table, or a person's values. Raises InputError."""
    from ldp_client.files.answers import values_from_text
    from ldp_client.files.tables import table_answers

    if study.respondent != "holder":
        if arguments.table:
            raise InputError.say("cli.for_people", study=study.id)
        texts = split_settings(study, [*arguments.answers, *arguments.public])
        _refuse_unmeant(study, arguments)
        answers = values_from_text(study, texts)
        for name, answer in answers.items():
            if answer is None:
                raise AnswerError.say("core.blank", name)
        return {**answers, **_refusals(study, texts, arguments.refuse)}
    if arguments.answers or arguments.public or arguments.refuse or not arguments.table:
        raise InputError.say("cli.for_holders", study=study.id)
    return {**table_answers(study, arguments.table)}


def _refusals(study: Study, texts: dict[str, str], refused: list[str]) -> dict[str, None]:
    """Return the questions that the person refuses. Raises InputError if a question offers no refusal."""
    offered = [question.id for question in study.questions if question.refusal]
    for name in refused:
        if name not in offered:
            raise InputError.say("cli.refuse", known=", ".join(offered) or "–")
        if name in texts:
            raise InputError.say("cli.refuse_and_set", question=name)
    return dict.fromkeys(refused)


def _refuse_unmeant(study: Study, arguments: argparse.Namespace) -> None:
    """Raise InputError if --public names a question, or if --set names a public field with --yes.

    Run again, the same command would send without noise what a newer version of the study no longer protects.
    """
    fields = [field.id for field in study.public]
    for setting in arguments.public:
        if setting.partition("=")[0] not in fields:
            raise InputError.say("cli.not_public", known=", ".join(fields) or "–")
    for setting in arguments.answers if arguments.yes else []:
        name = setting.partition("=")[0]
        if name in fields:
            raise InputError.say("cli.unmeant", field=name)


def _check_answers(study: Study, answers: dict[str, Any]) -> None:
    """Reject wrong answers, and warn of surprises, before asking for consent and writing anything.

    Raises AnswerError.
    """
    from ldp_client.answering import public_values, quantise_answers
    from ldp_client.device.budget import terms_of

    quantise_answers(study, terms_of(study).mechanisms, answers)
    _tell_public(public_values(study, answers), "public.value")
    _warn_of_clipping(study, answers)


def _tell_public(values: dict[str, str], sentence: str) -> None:
    for name, value in values.items():
        print(say(sentence, field=name, value=visible(value)), file=sys.stderr)


def _warn_of_clipping(study: Study, answers: dict[str, Any]) -> None:
    """Warn before consent of answers beyond bounds or norm, often because of a wrong unit."""
    from ldp_client.columns.clipping import is_clipped

    for question in study.questions:
        if is_clipped(question, answers[question.id]):
            print(say("cli.beyond", question=question.id), file=sys.stderr)


def _refuse_folder_of_others(folder: str) -> None:
    """Raise InputError, before creating anything in it, for a folder that does not belong to a device."""
    from ldp_client.device.layout import holds_device, holds_others

    try:
        is_wrong = os.path.isdir(folder) and not holds_device(folder) and holds_others(folder)
    except OSError as error:
        raise InputError.say("device.unread_folder", folder=folder, reason=error.strerror) from None
    if is_wrong:
        raise InputError.say("cli.other_folder", folder=folder)


def run_withdraw(arguments: argparse.Namespace) -> int:
    """ldpkit withdraw STUDY_URL"""
    from ldp_client.device.device import Device
    from ldp_client.device.requests import split_study_url

    collector, study_id = split_study_url(arguments.study_url)
    unknown = say("cli.never_answered", folder=arguments.folder, study=study_id)
    budget = _kept_budget(arguments.folder)
    if budget is None:
        raise InputError(unknown, code="device.unknown_report")
    device = Device(
        arguments.folder,
        budget,
        collector,
        signing_keys=arguments.trusted_signer or None,
        nodes=arguments.node,
    )
    try:
        count = device.withdraw(study_id)
    except InputError:
        raise InputError(unknown, code="device.unknown_report") from None
    line = say("cli.withdrew", study=study_id, count=count)
    document = {"study": study_id, "withdrawn": count}
    return _show_sent(arguments, line, document, device, arguments.now)


def _ask_for_consent(study: Study, collector: str) -> None:
    """Describe what would be sent and wait for a yes. Raises InputError for any other reply."""
    from ldp_client.explain import describe
    from schemas.channel_warnings import issuer_warnings
    from schemas.study_warnings import notes_of, warnings_to_people

    if not sys.stdin.isatty():
        raise UsageError.say("cli.nobody_consents")
    sent_to = say("cli.sent_to", collector=visible(collector))
    noted = [*warnings_to_people(study), *issuer_warnings(study, collector), *notes_of(study)]
    print("\n".join([*describe(study), sent_to, *noted]))
    try:
        said = input(say("cli.consent"))
    except EOFError:
        said = ""
    if said.strip().lower() not in ("y", "yes"):
        raise InputError.say("cli.no_consent")


def _show_sent(
    arguments: argparse.Namespace,
    line: str,
    document: dict[str, Any],
    device: Device,
    now: bool = False,
) -> int:
    """Flush, print `line` and what was sent, and return the exit code of sending.

    now: as in `Device.flush`.
    """
    if not arguments.json:
        print(line, flush=True)
    flushed = _flush(device, now)
    waiting = flushed.waiting + flushed.undeleted
    counts = {"sent": flushed.sent, "deleted": flushed.deleted, "waiting": waiting}
    counts.update({"scheduled": flushed.batched} if flushed.batched else {})
    show(arguments, [_sent(flushed)], {**document, **counts, "refused": list(flushed.refused)})
    if flushed.refused:
        return EXIT_REFUSED
    return EXIT_NETWORK if waiting else 0


def _flush(device: Device, now: bool = False) -> Flushed:
    """Flush, and print which reports were refused or are still queued."""
    flushed = device.flush(now=now)
    for line in flushed.refused:
        print(visible(say("device.refused", report=line)), file=sys.stderr)
    if flushed.stuck:
        print(visible(say("cli.stuck", count=flushed.stuck, reason=flushed.stuck_reason)), file=sys.stderr)
    if flushed.likely:
        print(visible(say("cli.waiting", count=flushed.likely, reason=flushed.reason)), file=sys.stderr)
    if flushed.batched:
        print(say("cli.later", count=flushed.batched), file=sys.stderr)
        if flushed.reason not in ("", flushed.stuck_reason) and not flushed.likely:
            print(flushed.reason, file=sys.stderr)
    return flushed


def _sent(flushed: Flushed) -> str:
    return say("device.sent", count=flushed.sent, deleted=flushed.deleted)


def split_settings(study: Study, settings: list[str]) -> dict[str, str]:
    """Return {column: text} from QUESTION=VALUE arguments. Raises InputError."""
    from ldp_client.files.answers import all_columns

    known = all_columns(study)
    if len(set(known)) < len(known):
        # Authors' tools refuse such a study, devices need not: an app names a record's fields in an object.
        raise StudyError("questions", "two answers have one name", code="study.id_like_record_field")
    texts: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in known:
            # Do not repeat even the name: it may be a mistyped answer.
            raise InputError.say("cli.set_form", known=", ".join(known))
        if name in texts:
            raise InputError.say("cli.set_twice", name=name)
        texts[name] = value
    return texts
