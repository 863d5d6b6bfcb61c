/** How reports leave so that nobody can join a person and a report: ldp_client/documents/channel.py. */

import { originOf } from "./address.js";
import { check, hasOwn, isObject, listOf, matching, plain, record, whole } from "./shapes.js";

// Of this machine itself.
const HERE = /^https?:..(localhost|127\.0\.0\.1|\[::1])(?![^:/])/;

// At most 500 characters, in the one spelling that is compared.
const issuer = matching(/^(?!.{501})https?:\/\/([a-z\d-]+\.)*[a-z\d-]+(:\d{1,5})?(\/[!"$->@-~]*)?$/);

// RSASSA-PSS with SHA-384, MGF1 of SHA-384 and a salt of 48 bytes, as RFC 9578, section 6.5, has it, in base64; behind
// it an odd modulus of 2048 bits, then 65537.
const ALGORITHM =
  "MIIBUjA9BgkqhkiG9w0BAQowMKANMAsGCWCGSAFlAwQCAqEaMBgGCSqGSIb3DQEBCDALBglghkgBZQMEAgKiAwIBMA" +
  "OCAQ8AMIIBCgKCAQEA";
const key = matching(new RegExp(`^${ALGORITHM}[g-z\\d+/][A-Za-z\\d+/]{340}[Qw]IDAQAB$`));

const values = plain((value) => {
  const { length } = isObject(value) ? Object.keys(value) : [];
  return length > 0 && length <= 16;
});

const keys = listOf(record({ key }, { public: values }), 1, 64, "key");
const batches = record({ hours: whole(1, 168) });
const CHANNEL = record({ batches }, { tickets: record({ issuer, keys }) });

/** Reads how a study's reports leave. Throws LdpkitError "study". */
export function read(study) {
  const { tickets } = CHANNEL(study.channel, "channel");
  const { refuseToday } = study;
  // Before anything is answered.
  study.refuseToday = (collector, transport) => {
    refuseToday?.();
    // Left from a trial: no report would ever leave, and whoever listens here would get the ticket.
    check(!HERE.test(tickets?.issuer) || HERE.test(collector), "channel");
    check(!tickets || !transport.relay, "channel.tickets");
    // One operator of both could join the person who got a token and the report that came with it.
    check(!tickets || originOf(tickets.issuer) !== originOf(collector), "channel.tickets.issuer");
  };
  const carried = study.public?.filter(({ source }) => source) ?? [];
  const strata = [];
  tickets?.keys.forEach(({ public: given = {} }, index) => {
    const path = `channel.tickets.keys[${index}].public`;
    for (const name in given) {
      check(isSpelled(carried.find(({ id }) => id === name), given[name]), `${path}.${name}`);
    }
    for (const { id } of carried) check(hasOwn(given, id), `${path}.${id}`);
    const stratum = JSON.stringify(carried.map(({ id }) => given[id]));
    check(!strata.includes(stratum), path);
    strata.push(stratum);
  });
}

/** Whether it is a field's value, as a report spells it. */
function isSpelled(field, value) {
  try {
    return field.toSend(value) === value;
  } catch {
    return false;
  }
}
