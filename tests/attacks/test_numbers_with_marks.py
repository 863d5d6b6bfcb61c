"""Write a number beyond the bounds with a mark between thousands: the page takes a thousandth of it."""

import json
import subprocess
from pathlib import Path

import pytest

ENTRIES = Path(__file__).parents[2] / "collector" / "assets" / "entries.js"
# What is typed, the bounds, and the number that it is taken for, or what is wrong with it.
TYPED = [
    ["12,000", [0, 10000], "two_readings"],
    ["12.000", [0, 10000], "two_readings"],
    ["-1,500", [-1000, 1000], "two_readings"],
    # A count of choices, up to 999.
    ["1,000", [0, 999], "two_readings"],
    ["1,500", [0, 5000], "two_readings"],
    ["900,000", [0, 100], "two_readings"],
    ["12000", [0, 10000], "high"],
    ["1,500.5", [0, 1000], "high"],
    ["55,5", [0, 80], "55.5"],
    ["55.5", [0, 80], "55.5"],
    ["0,125", [0, 80], "0.125"],
    ["1.2340", [0, 80], "1.2340"],
    ["9,999.5", [0, 10000], "9999.5"],
]
READ = """
globalThis.document = { documentElement: { lang: "en" } };
const { readNumber } = await import(process.argv[1]);
const read = ([typed, bounds]) => readNumber(typed, bounds);
const said = ({ problem, number }) => problem ?? number;
console.log(JSON.stringify(JSON.parse(process.argv[2]).map(read).map(said)));
"""


@pytest.mark.needs("node")
def test_ambiguous_number_is_rejected_whatever_the_bounds():
    given = ["node", "--input-type=module", "-e", READ, ENTRIES.as_uri(), json.dumps(TYPED)]
    done = subprocess.run(given, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == [expected for _, _, expected in TYPED]
