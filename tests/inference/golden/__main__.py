"""Write golden values: `python -m tests.inference.golden [PART …]`, of cases whose name has a part."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from tests.inference.golden.families import FAMILIES, path_of, read
from tests.inference.golden.reference import solved


def _rounded(number: float) -> float:
    return float(f"{number:.6g}")


def write(wanted: Sequence[str]) -> None:
    """Compute references and write each family's file; values of other cases stay."""
    for family, cases in FAMILIES.items():
        path = path_of(family)
        known = read(family) if path.exists() else {}
        for name, case in cases.items():
            if wanted and not any(part in f"{family}: {name}" for part in wanted):
                continue
            data = case.data()
            source, quantities = solved(case.target(data))
            known[name] = {
                "data": data.digest,
                "source": source,
                "quantities": {
                    quantity: {key: _rounded(number) for key, number in moments._asdict().items()}
                    for quantity, moments in quantities.items()
                },
            }
            print(f"{family}: {name}: {len(quantities)} quantities by {source}", flush=True)
        path.parent.mkdir(exist_ok=True)
        kept = {name: known[name] for name in cases if name in known}
        if kept:
            path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:])
