"""Write golden values: `python -m tests.inference.golden`."""

import json

from tests.inference.golden.families import FAMILIES, path_of
from tests.inference.golden.reference import moments_of

for family, cases in FAMILIES.items():
    written = {}
    for name, case in cases.items():
        data = case.data()
        quantities = {
            quantity: {key: float(f"{number:.6g}") for key, number in moments.items()}
            for quantity, moments in moments_of(case.target(data)).items()
        }
        written[name] = {"data": data.digest, "quantities": quantities}
    path_of(family).write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
