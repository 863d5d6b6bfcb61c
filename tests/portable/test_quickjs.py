"""A third engine, QuickJS, makes of the npm tarball and the same bytes the same reports, to the last one."""

import json
import subprocess

from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

ENTRY = 'export * from "ldpkit"; export { memoryLedger } from "ldpkit/ledgers/memory";'
ASKED = [
    (studies.NUMBER, {"hours": 3.5}),
    (studies.CHOICE, {"occupation": "worker"}),
    (studies.YES_NO, {"ever": "yes"}),
    (studies.MEMOIZED_BITS, {"brand": "worker"}),
]


def test_quickjs_and_node_make_the_same_reports(tmp_path):
    app = npm.installed_in(tmp_path, JAVASCRIPT)
    bundle, map_of = tmp_path / "ldpkit.js", tmp_path / "ldpkit.js.map"
    command = [npm.ESBUILD, "--bundle", "--format=iife", "--global-name=ldpkit", f"--outfile={bundle}"]
    options = ["--sourcemap=external", "--log-level=error"]
    subprocess.run([*command, *options], input=ENTRY, text=True, check=True, cwd=app)
    # What was bundled is what the tarball has, and nothing of these sources beside it.
    sources = [(tmp_path / one).resolve() for one in json.loads(map_of.read_text())["sources"]]
    packed = (app / "node_modules" / "ldpkit").resolve()
    assert len([one for one in sources if packed in one.parents]) > 10
    assert [one for one in sources if JAVASCRIPT in one.parents] == []
    documents = [studies.document(asked, id=f"study-{place}") for place, (asked, _) in enumerate(ASKED)]
    answers = [answer for _, answer in ASKED]
    there, here = json.loads(npm.node("quickjs.mjs", bundle, json.dumps(documents), json.dumps(answers)))
    assert there == here
    assert there[1::3] == ["answered"] * len(ASKED)
    assert {json.loads(body)["study"] for body in there[::3]} == {one["id"] for one in documents}
