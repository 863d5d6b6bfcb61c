"""The budget that the owner of a device gave it by `ldpkit answer --max-epsilon`, kept beside its ledger.

It is for life: a later call that leaves the option out keeps to it, and one that raises it says so.
"""

import os

from ldp_client.device.ledger import LOCK_SECONDS
from ldp_client.device.locking import BUDGET_NAME, LEDGER_NAME, OWNER_ONLY, locked
from ldp_client.device.policy import Policy
from ldp_client.documents.errors import InputError
from ldp_client.documents.rational import Rational
from ldp_client.files.disk import read_bytes, replacing, write_new
from ldp_client.words.text import say, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Optional

DEFAULT = "8"
# A longer file is none that `keep_budget` wrote.
MOST_BYTES = 100


def kept_budget(folder: str) -> "Optional[str]":
    """What its owner wrote; None where an app brings the budget. Raises InputError where that is none."""
    path = os.path.join(folder, BUDGET_NAME)
    if not os.path.lexists(path):
        return None
    content = read_bytes(path)
    try:
        text = content.decode().strip()
    except ValueError:
        text = ""
    if len(content) > MOST_BYTES or not _is_budget(text):
        raise InputError.say("cli.budget.damaged", path=path)
    return text


def refuse_unreadable(
    collector: str,
    signing_keys: "Optional[Sequence[str]]",
    nodes: "Sequence[str]",
    known_digests: "Optional[Sequence[str]]",
) -> None:
    """Raises what a device does for options that it cannot be made with, before anything is kept of it."""
    Policy(DEFAULT, None, DEFAULT, None, signing_keys, nodes, known_digests).base_url(collector)


def first_budget(folder: str, given: "Optional[str]") -> "tuple[str, str]":
    """What a call's device takes, and a line that says so where a ledger had lost its own, else "".

    What nobody kept yet is kept at once, before there is a ledger: from then on a call that is killed, or
    another at the same time, cannot leave a device that knows nothing of it.
    """
    kept = kept_budget(folder)
    if kept is None and (given is None or _is_budget(given)):
        kept, said = _keep_first(folder, given)
        return given or kept, said
    return given if given is not None else kept or DEFAULT, ""


def _keep_first(folder: str, given: "Optional[str]") -> "tuple[str, str]":
    """(what is kept now, the line)."""
    budget, path = given or DEFAULT, os.path.join(folder, BUDGET_NAME)
    try:
        os.makedirs(folder, mode=OWNER_ONLY, exist_ok=True)
    except (OSError, ValueError):
        # The ledger says what is wrong with it.
        return budget, ""
    with locked(folder, LOCK_SECONDS):
        kept = kept_budget(folder)
        if kept is not None:
            return kept, ""
        has_ledger = os.path.lexists(os.path.join(folder, LEDGER_NAME))
        write_new(path, f"{budget}\n", OWNER_ONLY & ~0o111)
    lost = has_ledger and given is None
    return budget, visible(say("cli.budget.not_kept", path=path, now=budget)) if lost else ""


def _is_budget(text: str) -> bool:
    """Whether a device takes it, which says what is wrong with it otherwise."""
    try:
        return Rational(0) < Rational.parse(text)
    except ValueError:
        return False


def keep_budget(folder: str, budget: str) -> str:
    """Keep what the device in a folder took; a line that says so where that raises what was kept, else ""."""
    kept = kept_budget(folder)
    if kept == budget:
        return ""
    with replacing(os.path.join(folder, BUDGET_NAME), private=True) as file:
        file.write(f"{budget}\n")
    if kept is not None and Rational.parse(kept) < Rational.parse(budget):
        return visible(say("cli.budget.raised", before=kept, now=budget))
    return ""
