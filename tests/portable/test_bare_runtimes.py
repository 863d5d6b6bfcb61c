"""An app of React Native, and an app's own habits, show no clock, lose no receipt and damage no ledger."""

import json
import re
import subprocess
import time

import pytest

from schemas import Study
from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

STUDY = Study(studies.document(studies.NUMBER))
AGREED = [["answer", {"hours": 3}], ["consent"]]
# As JavaScript's clock is written in these years.
CLOCK = re.compile(r"\d{13}")


def taken(site, folder, kind, steps):
    """Return the result of each step of channel.mjs in such a runtime."""
    site.study = STUDY.canonical().decode()
    command = [
        npm.newer_node(),
        "--import",
        "./bare_runtime.mjs",
        "channel.mjs",
        JAVASCRIPT / "index.js",
        kind,
    ]
    command += [folder / "kept.db", site.url, site.study, json.dumps(steps)]
    done = subprocess.run([*map(str, command)], cwd=npm.FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["memory", "node", "expo"])
def test_receipts_are_read_and_urls_contain_no_clock_time(kind, site, tmp_path):
    steps = [["fetched"], *AGREED, ["flush"], ["withdraw"], ["flush"], ["fetched"]]
    said = taken(site, tmp_path, kind, steps)
    assert said == [STUDY.id, "held", "queued", "sent", 1, "gone", STUDY.id]
    assert [method for method, *_ in site.requests] == ["PUT", "DELETE"]
    addresses = [*site.asked, *(path for _, path, _ in site.requests)]
    assert len(site.asked) == 3
    assert not any(CLOCK.search(path) for path in addresses if path.startswith("/v1/studies/survey?"))
    # Nor is any asked for twice: a cache has nothing of it.
    assert len(set(site.asked)) == 3
    stamps = [int(one) for path in site.asked for one in re.findall(r"_=(\d+)", path)]
    assert len(stamps) == 3
    assert all(abs(1000 * time.time() - stamp) > 1e6 for stamp in stamps)


def test_upload_address_has_no_query(site, tmp_path):
    taken(site, tmp_path, "memory", [*AGREED, ["flush"]])
    ((_, path, _),) = site.requests
    assert re.fullmatch(r"/v1/studies/survey/reports/[0-9a-f]{32}", path)


@pytest.mark.parametrize("kind", ["node", "expo"])
def test_integers_stored_as_text_do_not_damage_the_ledger(kind, site, tmp_path):
    """BigInt.prototype.toJSON, which many apps set: what is spent stays a whole number."""
    first = taken(site, tmp_path, kind, [*AGREED, ["left"]])
    again = taken(site, tmp_path, kind, [["left"], ["told"], ["flush"]])
    assert again[0] == first[-1] < 20
    assert again[1]["studies"][0]["study"] == STUDY.id
    assert again[2] == "sent"
