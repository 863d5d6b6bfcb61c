/**
 * How a study's reports leave so that nobody can join a person and a report. ldp_client/documents/channel.py is its twin.
 */

import { check, hasOwn, isObject, isText, listOf, plain, record, whole } from "./shapes.js";

const MOST_HOURS = 168;
const MOST_KEYS = 64;
const MOST_VALUES = 16;

/** Whether a test holds; not where it throws. */
function holds(test) {
  try {
    return test();
  } catch {
    return false;
  }
}

// Of this machine itself.
const HERE = /^https?:..(localhost|127\.0\.0\.1|\[::1])(?![^:/])/;

/** A base URL of at most 500 characters, in the one spelling that is compared, its host as long as DNS names may be. */
const address = plain(
  (value) => isText(value) && /^(?!.{501})https?:\/\/(?![^:/]{254})[a-z\d-]{1,63}(\.[a-z\d-]{1,63})*(:\d{1,5})?(\/[!"$->@-~]*)?$/.test(value),
);

/**
 * RSASSA-PSS with SHA-384, MGF1 of SHA-384 and a salt of 48 bytes, as RFC 9578, section 6.5, has it, in base64; behind
 * it an odd modulus of 2048 bits, then 65537.
 */
const tokenKey = plain(
  (value) =>
    isText(value) &&
    /^MIIBUjA9BgkqhkiG9w0BAQowMKANMAsGCWCGSAFlAwQCAqEaMBgGCSqGSIb3DQEBCDALBglghkgBZQMEAgKiAwIBMAOCAQ8AMIIBCgKCAQEA[g-z\d+/][A-Za-z\d+/]{340}[Qw]IDAQAB$/.test(value),
);

const values = plain((value, names = isObject(value) ? Object.keys(value) : "") => names.length && !names[MOST_VALUES]);

const CHANNEL = record(
  { batches: record({ hours: whole(1, MOST_HOURS) }) },
  {
    tokens: record({ issuer: address, keys: listOf(record({ key: tokenKey }, { public: values }), 1, MOST_KEYS, "key") }),
  },
);

/** Reads how a study's reports leave. Throws LdpkitError "study". */
export function read(study) {
  const { tokens } = CHANNEL(study.channel, "channel");
  const { refuseToday } = study;
  // Before anything is answered.
  study.refuseToday = (collector, transport) => {
    refuseToday?.();
    // Left from a trial: no report would ever leave, and whoever listens here would get the invitation.
    check(!HERE.test(tokens?.issuer) || HERE.test(collector), "channel");
    check(!tokens || !transport.relay, "channel.tokens");
  };
  const carried = study.public?.filter(({ source }) => source) ?? [];
  const strata = [];
  tokens?.keys.forEach(({ public: given = {} }, index) => {
    const path = `channel.tokens.keys[${index}].public`;
    for (const name in given) {
      const field = carried.find(({ id }) => id === name);
      // As a report spells it.
      check(holds(() => field.toSend(given[name]) === given[name]), `${path}.${name}`);
    }
    for (const { id } of carried) check(hasOwn(given, id), `${path}.${id}`);
    const stratum = JSON.stringify(carried.map(({ id }) => given[id]));
    check(!strata.includes(stratum), path);
    strata.push(stratum);
  });
}
