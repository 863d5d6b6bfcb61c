"""A third engine, QuickJS, makes of the same bytes the same reports, to the last one."""

import json
import subprocess

from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

ENTRY = 'export * from "%s/index.js"; export { memoryLedger } from "%s/ledgers/memory.js";'
ASKED = [
    (studies.NUMBER, {"hours": 3.5}),
    (studies.CHOICE, {"occupation": "worker"}),
    (studies.YES_NO, {"ever": "yes"}),
    (studies.MEMOIZED_BITS, {"brand": "worker"}),
]


def test_reports_are_those_of_node(tmp_path):
    npm.install()
    bundle = tmp_path / "ldpkit.js"
    command = [npm.ESBUILD, "--bundle", "--format=iife", "--global-name=ldpkit", f"--outfile={bundle}"]
    subprocess.run(
        [*command, "--log-level=error"], input=ENTRY % (JAVASCRIPT, JAVASCRIPT), text=True, check=True
    )
    documents = [studies.document(asked, id=f"study-{place}") for place, (asked, _) in enumerate(ASKED)]
    answers = [answer for _, answer in ASKED]
    there, here = json.loads(npm.node("quickjs.mjs", bundle, json.dumps(documents), json.dumps(answers)))
    assert there == here
    assert there[1::3] == ["answered"] * len(ASKED)
    assert {json.loads(body)["study"] for body in there[::3]} == {one["id"] for one in documents}
