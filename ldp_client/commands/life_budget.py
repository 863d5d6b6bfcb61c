"""The budget that the owner of a device gave it by `ldpkit answer --max-epsilon`, kept beside its ledger.

It is for life: a later call that leaves the option out keeps to it, and one that raises it says so.
"""

import os

from ldp_client.device.locking import BUDGET_NAME
from ldp_client.documents.errors import InputError
from ldp_client.documents.rational import Rational
from ldp_client.files.disk import read_bytes, replacing
from ldp_client.words.text import say, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
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
        if len(content) > MOST_BYTES or not Rational(0) < Rational.parse(text):
            raise ValueError
    except ValueError:
        raise InputError(say("cli.budget.damaged", path=path)) from None
    return text


def keep_budget(folder: str, budget: str) -> str:
    """Keep what the device in a folder took; a line that says so where that raises what was kept, else ""."""
    kept, budget = kept_budget(folder), budget.strip()
    if kept == budget:
        return ""
    with replacing(os.path.join(folder, BUDGET_NAME), private=True) as file:
        file.write(f"{budget}\n")
    if kept is not None and Rational.parse(kept) < Rational.parse(budget):
        return visible(say("cli.budget.raised", before=kept, now=budget))
    return ""
