"""The order in which the npm package sends: both kinds alternate, each in random order."""

import json

from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

FLUSHED = """
const {{ openDevice }} = await import("{port}/index.js");
const {{ memoryLedger }} = await import("{port}/ledgers/memory.js");
const collector = "https://collector.example";
const row = {{ study: "s", version: 1, digest: "d", secret: "aa", origin: collector, collector }};
const queued = {{ ...row, publisher: "c", body: "{{}}", state: "queued" }};
const withdrawn = {{ ...queued, body: "", state: "withdrawn" }};
const rows = [..."abcde"].map((id) => ({{ ...(id < "d" ? queued : withdrawn), id }}));
async function flushed() {{
  const ledger = memoryLedger();
  await ledger.write((memory) => {{ memory.reports = rows; }});
  const order = [];
  const transport = async (url) => {{
    order.push(url.at(-1));
    return new Response(null, {{ status: 404 }});
  }};
  const device = await openDevice({{ maxEpsilon: "1", collector, ledger, transport }});
  await device.flush({{ attempts: 1 }});
  return order.join("");
}}
const orders = new Set();
for (let count = 0; count < 400; count++) orders.add(await flushed());
console.log(JSON.stringify([...orders]));
"""


def test_deletions_and_reports_alternate_in_random_order():
    script = FLUSHED.format(port=JAVASCRIPT)
    orders = json.loads(npm.node("--input-type=module", "-e", script))
    uploads = ["abc", "acb", "bac", "bca", "cab", "cba"]
    assert set(orders) == {f"{x}{u[0]}{y}{u[1:]}" for x, y in ("de", "ed") for u in uploads}
