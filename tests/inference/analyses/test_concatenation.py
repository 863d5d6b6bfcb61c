"""Tables are joined without loss of what each says of a private number."""

from __future__ import annotations

import numpy as np
import pytest

from inference.analyses.concatenation import joined
from inference.analyses.table import table_of
from tests.inference.analyses.simulated import workers

SIZES = {"a": 1000, "b": 3000}


@pytest.mark.attack(17)
@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_plain_mean_is_pooled_over_all_waves(order):
    """One wave's mean must not pass as that of all; each wave weighs as its people, whichever is first."""
    tables = {}
    for place, name in enumerate(order):
        table = workers(SIZES[name], place, "normal" if name == "a" else "groups")
        tables[name] = table_of(table.public[["died"]], [table.private["hours"]])
    own = {name: table.private["hours"].number for name, table in tables.items()}
    found = joined(tables, "wave").private["hours"].number
    shares = {name: SIZES[name] / 4000 for name in order}
    assert found.plain.mean == pytest.approx(sum(shares[one] * own[one].plain.mean for one in order))
    error = np.sqrt(sum((shares[one] * own[one].plain.error) ** 2 for one in order))
    assert found.plain.error == pytest.approx(error)
    assert found.mean == pytest.approx(sum(shares[one] * own[one].mean for one in order))
    assert found.plain.mean != pytest.approx(own[order[0]].plain.mean)
