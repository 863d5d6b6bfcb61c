"""The subcommand `ldpkit budget`: a device's past answers, their recipients and the privacy budget spent."""

import argparse
import os
from fractions import Fraction
from typing import Any

from ldp_client.commands.output import add_output, show
from ldp_client.commands.parsers import Subparsers, add_command
from ldp_client.device.budget import Disclosure
from ldp_client.documents.errors import InputError
from ldp_client.words.text import rounded_up, say, visible
from ldpkit.cli.device import default_folder, expanded_folder

# By a report's state, as in disclosures.py.
SENTENCES = {
    "sent": "cli.budget.sent",
    "waiting": "cli.budget.waiting",
    "refused": "cli.budget.refused",
    "being_deleted": "cli.budget.being_deleted",
}


def add_budget(subparsers: Subparsers) -> None:
    """Register budget."""
    budget = add_command(subparsers, "budget", say("cli.help.budget"), "budget")
    text = say("cli.help.folder")
    budget.add_argument("--folder", type=expanded_folder, default=default_folder(), help=text)
    add_output(budget)
    budget.set_defaults(run=run_budget)


def run_budget(arguments: argparse.Namespace) -> int:
    """ldpkit budget"""
    from ldp_client.device.budget import disclosures_of
    from ldp_client.device.layout import holds_device
    from ldp_client.device.ledger import Ledger

    if not os.path.isdir(arguments.folder) or not holds_device(arguments.folder):
        raise InputError.say("cli.no_device", folder=arguments.folder)
    ledger = Ledger(arguments.folder)
    budget, told = ledger.budget(), disclosures_of(ledger)
    epsilon = sum([one.epsilon for one in told], Fraction(0))
    lines = [line for one in told for line in _lines(one)]
    total = [say("cli.budget.total", count=len(told), epsilon=rounded_up(float(epsilon)))]
    total += [] if budget is None else [say("cli.budget.most", most=budget)]
    document = {"epsilon": float(epsilon), "max_epsilon": budget, "studies": [_document(one) for one in told]}
    show(arguments, [*lines, *total], document)
    return 0


def _lines(told: Disclosure) -> list[str]:
    facts = {"study": told.study, "version": told.version, "epsilon": rounded_up(float(told.epsilon))}
    collector = visible(told.collector) or say("cli.budget.unknown")
    states = [say(SENTENCES[state], count=count) for state, count in told.reports.items() if count]
    return [
        say("cli.budget.study", collector=collector, **facts),
        "  " + say("cli.budget.asked", questions=", ".join(told.questions)),
        "  " + (", ".join(states) or say("cli.budget.none")),
        *(["  " + say("cli.budget.without_token", count=told.untokened)] if told.untokened else []),
        *(["  " + say("cli.budget.batched", count=told.batched)] if told.batched else []),
        *["  " + say("cli.budget.stratum", values=_pairs(values)) for values in told.strata],
    ]


def _pairs(values: dict[str, str]) -> str:
    return visible(", ".join([f"{field}={values[field]}" for field in sorted(values)]))


def _document(told: Disclosure) -> dict[str, Any]:
    numbers = {"epsilon": float(told.epsilon), "delta": float(told.delta)}
    asked = {"study": told.study, "collector": told.collector, "version": told.version}
    strata = {"strata": told.strata} if told.strata else {}
    return {**asked, "questions": told.questions, **numbers, "reports": told.reports, **strata}
