"""A device that answers one study once: it joins the Wi-Fi, answers, sends, and sleeps between its attempts.

config.json: {"wifi": [name, password], "host": …, "port": 443, "study": its id, "digest": of the one study
that this board answers, "invitation": where the study's issuer gives a token for it}; roots.der: the
certificate authority of both. `answers` says what it is asked.
"""

import json
import os
import time
from binascii import hexlify
from hashlib import sha256

import ledger
import machine
import network
import ntptime
from channel import Leaving, header_now, issuer_of, postpone
from exchange import Collector, is_deleted, is_settled

from ldp_client.documents.errors import LdpkitError
from ldp_client.documents.study import Study

JOIN_S = 20
FIRST_PAUSE_S, LONGEST_PAUSE_S = 60, 6 * 3600
WLAN = network.WLAN(network.STA_IF)


def answers():
    """{question: answer}; here, whether a contact at pin 4 is closed."""
    return {"ever": "no" if machine.Pin(4, machine.Pin.IN, machine.Pin.PULL_UP).value() else "yes"}


def random(size):
    """The chip's generator is a true one while its radio is on, and not otherwise."""
    if not WLAN.active():
        raise RuntimeError("the radio is off: no noise can be drawn")
    return os.urandom(size)


def join(name, password):
    """Whether the board is on the network; what failed is left, so that the next attempt begins anew."""
    WLAN.active(True)
    if not WLAN.isconnected():
        WLAN.connect(name, password)
    for _ in range(10 * JOIN_S):
        if WLAN.isconnected():
            return True
        time.sleep_ms(100)
    WLAN.disconnect()
    return False


def today():
    """By the network's clock, else None."""
    try:
        ntptime.settime()
    except OSError:
        return None
    year, month, day = time.gmtime()[:3]
    return f"{year}-{month:02}-{day:02}"


def now():
    """Seconds since 1970; boards count from 1970 or from 2000."""
    return int(time.time()) + (0 if time.gmtime(0)[0] == 1970 else 946684800)


def fetch(collector, config):
    """(the study that was pinned, which collector has it). ValueError for any other study."""
    status, headers, body = collector.request("GET", "/v1/studies/" + config["study"], [])
    identity = headers.get("ldpkit-collector")
    if status != 200 or not identity or hexlify(sha256(body).digest()).decode() != config["digest"]:
        raise ValueError("not the study that was pinned")
    if headers.get("ldpkit-study") == "closed" and not ledger.read_ledger()["spent"]:
        raise ValueError("the study is closed")
    return Study.from_json(body.decode()), identity


def send(collector, config, roots, day):
    """Each deletion and each report that waits once; whether any is left."""
    ledger.take_withdrawal()
    kept = ledger.read_ledger()
    for entry in kept["deletions"]:
        study, report_id, secret, *_ = known(collector, config, entry)
        publisher = publisher_of(collector, config, entry)
        answer = ask(collector, "DELETE", study, report_id, [("LDPKit-Withdrawal", secret)])
        if answer and is_deleted(answer, report_id, publisher):
            ledger.drop_deletion(report_id)
    moment = now() if day else None
    for text in filter(ledger.waits, kept["outbox"]):
        entry = ledger.entry_of(kept, json.loads(text)["id"])
        study, report_id, _, _, *of, channel = known(collector, config, entry)
        about = Leaving(of[0], channel)
        issuer, invitation = issuer_of(about, roots), config.get("invitation", "")
        more = header_now(about, report_id, issuer, invitation, moment, random)
        if more is None:
            continue
        fields = [("Content-Type", "application/json")]
        fields.extend(more)
        publisher = publisher_of(collector, config, entry)
        ledger.note_left(report_id)
        answer = ask(collector, "PUT", study, report_id, fields, text)
        if answer and is_settled(answer, report_id, publisher, *of, day):
            ledger.drop_report(report_id)
        elif about.channel:
            postpone(about, report_id, moment, random)
    ledger.take_withdrawal()
    kept = ledger.read_ledger()
    return bool(kept["outbox"] or kept["deletions"])


def known(collector, config, entry):
    """An entry of the ledger, whole: of an earlier release's the collector is asked which study it was."""
    if len(entry) > 3:
        return entry
    study, publisher = fetch(collector, config)
    entry.extend([publisher, study.digest, study.closes, study.document.get("channel")])
    return entry


def publisher_of(collector, config, entry):
    """Which collector has the entry's study.

    Of one with a channel that is asked just before: what it was called at the fetch of the study may be
    a name for this board alone.
    """
    return entry[3] or fetch(collector, config)[1]


def ask(collector, method, study, report_id, fields, text=""):
    """The answer to a request about a report; None where none came."""
    path = "/v1/studies/" + study + "/reports/" + report_id
    try:
        return collector.request(method, path, fields, text.encode())
    except (OSError, ValueError):
        return None


def attempt(config, collector, roots):
    """Go as far as the network allows; whether nothing is left to do."""
    if not join(*config["wifi"]):
        return False
    day = today()
    if not ledger.read_ledger()["spent"]:
        study, publisher = fetch(collector, config)
        kept = None if study.channel else publisher
        ledger.answer_once(study, answers(), random, day, publisher=kept)
    return not send(collector, config, roots, day)


def pause(number):
    """Seconds, drawn from a range that doubles: boards that failed together come back apart."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S << min(number, 16))
    return 1 + int.from_bytes(os.urandom(4), "big") % longest


def main():
    with open("config.json") as file:
        config = json.load(file)
    with open("roots.der", "rb") as file:
        roots = file.read()
    collector = Collector(config["host"], config["port"], roots)
    number = 0
    while True:
        try:
            if attempt(config, collector, roots):
                break
        except (OSError, ValueError, RuntimeError, LdpkitError) as error:
            # No network, no collector, not open yet. What is printed holds no answer.
            print("later:", error)
        time.sleep(pause(number))
        number += 1
    WLAN.active(False)


if __name__ == "__main__":
    main()
