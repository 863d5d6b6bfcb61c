"""A device that answers a study once: it joins the Wi-Fi, answers, sends, and sleeps between its attempts.

The board needs MicroPython 1.25 with integers of any size (MICROPY_LONGINT_IMPL_MPZ, the default). The heap
holds about 180 KB for choices, 250 KB for a number, 290 KB for records; sampled products need up to 400 KB.
`random` must always be the same function. ldpkit tests 1024 of its bytes at first use and each later read
(SP 800-90B), and raises RandomnessError. Single-precision floats lose accuracy far below the noise.

config.json: {"wifi": [name, password], "host": …, "port": 443, "study": its id, "digest": of the one study
that this board answers, "ticket": where the study's collector, or its issuer, wants one}; roots.der: the
certificate authority of both. `answers` says what it is asked. With another study in its configuration the
board answers that one too, within its budget; of one study it answers one version. Change the study once the
board has ended: what still waits for a token then has lost its ticket.
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


def fetch(collector, study, digest, version=None):
    """(the study of that digest, which collector has it). ValueError for any other.

    version: which one is asked for; the latest where it is left out.
    """
    path = "/v1/studies/" + study + (f"?version={version}" if version else "")
    status, headers, body = collector.request("GET", path, [])
    identity = headers.get("ldpkit-collector")
    if status != 200 or not identity or hexlify(sha256(body).digest()).decode() != digest:
        raise ValueError("not the study that was pinned")
    if headers.get("ldpkit-study") == "closed" and not ledger.is_answered(study):
        raise ValueError("the study is closed")
    return Study.from_json(body.decode()), identity


def send(collector, config, roots, day):
    """Each deletion and report in turn once, whatever becomes of the others; whether any is left."""
    ledger.take_withdrawal()
    deletions, texts = in_turn(ledger.read_ledger(), config["study"])
    for entry in deletions:
        attempted(delete, collector, config, entry)
    moment = now() if day else None
    for text in filter(ledger.waits, texts):
        attempted(send_report, collector, config, roots, text, (day, moment))
    ledger.take_withdrawal()
    kept = ledger.read_ledger()
    return bool(kept["outbox"] or kept["deletions"])


def in_turn(kept, study):
    """(deletions, reports) for this waking: tokens are asked for, or what had its token leaves.

    Issuer and collector would see the same second of one board otherwise.
    """
    asking, leaving = [], [entry for entry in kept["deletions"] if ledger.may_have_tokens(entry)]
    for text in kept["outbox"]:
        entry = ledger.entry_of(kept, json.loads(text)["id"])
        if kept.get("leaving", {}).get(entry[1], {}).get("token"):
            leaving.append(text)
        elif entry[0] == study and ledger.may_have_tokens(entry):
            asking.append(text)
    # By chance, so that neither waits for ever: no noise and no secret, any bit does.
    held = (asking, leaving)[os.urandom(1)[0] & 1] if asking and leaving else []
    return [[one for one in kept[kind] if one not in held] for kind in ("deletions", "outbox")]


def attempted(work, *arguments):
    """Do it; what fails is left for later, and keeps nothing else from leaving."""
    try:
        work(*arguments)
    except (OSError, ValueError, RuntimeError, LdpkitError) as error:
        # It holds no answer.
        print("later:", error)


def delete(collector, config, entry):
    """Ask for a report's deletion."""
    about = known(collector, config, entry)
    publisher = publisher_of(collector, about)
    answer = ask(collector, "DELETE", about[0], about[1], [("LDPKit-Withdrawal", about[2])])
    if answer and is_deleted(answer, about[1], publisher):
        ledger.drop_deletion(about[1])


def send_report(collector, config, roots, text, at):
    """Send a report, or ask for its token. at: the day, and the moment where the day is known."""
    day, moment = at
    report = json.loads(text)
    about = known(collector, config, ledger.entry_of(ledger.read_ledger(), report["id"]), report["version"])
    study, report_id, _, _, digest, closes, channel, _, _ = about
    leaving = Leaving(digest, channel)
    issuer, ticket = issuer_of(leaving, roots), config.get("ticket", "")
    if study != config["study"]:
        if issuer and not ledger.leaving_of(report_id).get("token"):
            raise ValueError("no token without the ticket to the study before")
        ticket = ""
    more = header_now(leaving, report_id, issuer, ticket, moment, random)
    if more is None:
        return
    publisher = publisher_of(collector, about)
    ledger.note_left(report_id)
    fields = [("Content-Type", "application/json")]
    answer = ask(collector, "PUT", study, report_id, fields + more, text)
    if answer and is_settled(answer, report_id, publisher, digest, closes, day):
        ledger.drop_report(report_id)
    elif leaving.channel:
        postpone(leaving, report_id, moment, random)


def known(collector, config, entry, version=None):
    """An entry of the ledger, whole: of an earlier release's the collector is asked which study it was."""
    # At no host that is known, a collector is asked who it is.
    about, host = list(entry), None
    if len(about) == 3:
        if about[0] != config["study"]:
            raise ValueError("which collector has the study before is not known")
        study, publisher = fetch(collector, config["study"], config["digest"], version)
        about.extend([publisher, study.digest, study.closes, study.document.get("channel")])
        host = collector.host
    if len(about) == 7:
        about.append(version)
    if len(about) == 8:
        about.append(host)
    return about


def publisher_of(collector, about):
    """Which collector has the version of the study that the report answers. ValueError where that is another.

    Of one with a channel that is asked just before: what it was called at the fetch of the study may be
    a name for this board alone. So it is where the board was given another host since: neither a report nor
    the secret of its deletion is for whoever is there now. Where no identity is kept to know it by, as of one
    with a channel, what waits goes to the host that it was answered at alone.
    """
    publisher, host = about[3], about[8]
    if publisher and host == collector.host:
        return publisher
    if publisher is None and host not in (None, collector.host):
        raise ValueError("what waits is for " + host + " alone: configure that host again")
    found = fetch(collector, about[0], about[4], about[7])[1]
    if publisher not in (None, found):
        raise ValueError("what waits is for another collector")
    return found


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
    if not ledger.is_answered(config["study"]):
        attempted(answer_configured, collector, config, day)
    # Of a study before, too.
    return not send(collector, config, roots, day) and ledger.is_answered(config["study"])


def answer_configured(collector, config, day):
    """Answer the study that is configured."""
    if ledger.read_ledger()["spent"]:
        # A report of another study was meant.
        ledger.take_withdrawal()
    study, publisher = fetch(collector, config["study"], config["digest"])
    kept = None if study.channel else publisher
    ledger.answer_once(study, answers(), random, day, publisher=kept, host=collector.host)


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
