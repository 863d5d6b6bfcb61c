"""Boards that run examples/esp32 on MicroPython, as trials.json has it."""

import json
import shutil

from schemas import Study
from tests import studies
from tests.portable.platforms import REPOSITORY, run_micropython
from tests.portable.token_issuer import keys

EXAMPLE = REPOSITORY / "examples" / "esp32"
DRIVER = (REPOSITORY / "tests" / "portable" / "board.py").read_text()
STUDY = Study(studies.document(studies.YES_NO, closes="2026-06-20"))
KEYS = keys()
SECRETS = [{"short_id": key.short_id, "modulus": str(key.modulus), "secret": str(key.secret)} for key in KEYS]
NEXT = Study(studies.document({**studies.YES_NO, "text": "Is it so?"}, id="next"))
IDENTITY, ANOTHER = "0123456789abcdef" * 2, "f" * 32
HOURS = 6
REGION = {"id": "region", "choices": ["north", "south"], "source": "invitation"}


def run_trials(folder, *asked, study=STUDY, invited=False):
    """What became of a board in each of these trials."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    config = {"wifi": ["name", "password"], "host": "collect.example.org", "port": 443}
    config.update(study=study.id, digest=study.digest)
    config.update({"invitation": "CODE"} if study.channel or invited else {})
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "keys.json").write_text(json.dumps(SECRETS if study.channel else []))
    (folder / "roots.der").write_bytes(b"roots")
    (folder / "study.json").write_bytes(study.canonical())
    (folder / "trials.json").write_text(json.dumps(asked))
    return json.loads(run_micropython(folder, DRIVER))


def next_config(host="collect.example.org", study=NEXT, identity=IDENTITY, **more):
    """What a board is given after it answered STUDY."""
    config = {"study": study.id, "digest": study.digest, "host": host}
    return {"config": config, "serves": study.canonical().decode(), "identity": identity, **more}


def with_tokens(*strata, issuer="https://issuer.example/a", **more):
    """The same study, with a channel."""
    keys = [{"key": key.stated, "public": {"region": one}} for key, one in zip(KEYS, strata)]
    tokens = {"issuer": issuer, "keys": keys or [{"key": KEYS[0].stated}]}
    fields = {"public": [REGION]} if strata else {}
    channel = {"batches": {"hours": HOURS}, "tokens": tokens, **more}
    return Study(studies.document(studies.YES_NO, channel=channel, **fields))
