"""The subcommand `ldpkit dossier`: documents for an ethics board and a data protection officer."""

import argparse
from pathlib import Path

from ldp_client.commands.output import add_output, show
from ldp_client.commands.parsers import Subparsers, add_command
from schemas.study import load_study


def add_dossier(subparsers: Subparsers) -> None:
    """Register dossier."""
    text = "write a dossier for an ethics board and a data protection impact assessment"
    dossier = add_command(subparsers, "dossier", text, "dossier study.json --out dossier")
    dossier.add_argument("study", metavar="STUDY.json")
    dossier.add_argument(
        "--out", required=True, metavar="DIR", help="a new folder: gets dossier.md and dossier.html"
    )
    add_output(dossier)
    dossier.set_defaults(run=run_dossier)


def run_dossier(arguments: argparse.Namespace) -> int:
    """ldpkit dossier STUDY.json --out DIR"""
    from ldpkit.dossier import FILES, save_dossier

    folder = Path(arguments.out)
    save_dossier(load_study(arguments.study), folder)
    line = f"{' and '.join(str(folder / name) for name in FILES)}: fill in what is marked “to write”"
    show(arguments, [line], {"folder": arguments.out, "files": FILES})
    return 0
