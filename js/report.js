/** From one set of answers to one report. */

import { canonicalJson, hash, hex, utf8 } from "./encoding.js";
import { fail } from "./errors.js";
import { systemRandom, take } from "./randomness.js";
import { check, checkNames } from "./shapes.js";

/** {id, secret}: who knows the secret may have the report deleted; the id, its hash, gives nobody that right. */
export async function drawIdentity(random = systemRandom) {
  const bytes = 16;
  const secret = take(random, bytes);
  const digest = await hash("SHA-256", utf8("ldpkit.report-id/1\0"), secret);
  return { id: hex(digest.subarray(0, bytes)), secret: hex(secret) };
}

/**
 * [payloads, clear, spare]: the noisy payloads of all questions, or of one, drawn whatever the answers are, before
 * (`place`: only its answer is given) or here; what stands in clear beside them; and spaces behind the report, which
 * hide question and values in its size. All answers are checked before any noise is drawn.
 */
export function drawPayloads(study, answers, random, mechanisms, place = -1) {
  // A copy may have been changed.
  if (!Object.isFrozen(study)) fail("input", "is a copy", "study");
  const ids = study.questions.map((asked) => asked.id);
  const [asked, clear, hidden = 0] = study.split?.(answers) ?? [answers];
  const isAsked = (_, index) => place < 0 || index === place;
  checkNames(asked, ids.filter(isAsked));
  const ready = mechanisms.map((mechanism, index) => {
    // Its noise is drawn once for a person and kept. Drawn anew for each report, all of them tell the answer.
    if (mechanism.permanent) fail("input", "needs a device", ids[index]);
    const quantised = isAsked(mechanism, index) && mechanism.quantise(answers[ids[index]]);
    const size = ids[index].length + 4 * Math.ceil(mechanism.payloadSize / 3);
    return [ids[index], () => base64(mechanism.randomise(quantised, random)), size];
  });
  const [drawn, spare] = study.one?.pick(ready, place, random) ?? [ready, 0];
  const payloads = Object.fromEntries(drawn.map(([id, draw]) => [id, draw()]));
  return [payloads, clear, spare + hidden];
}

/** The version of a study that was answered, as a report states it. */
export const versionOf = ({ id: study, version, digest }) => ({ study, version, digest });

/** Return {id, secret, body, answered}. Throws LdpkitError "study" for a report too large to send. */
export function reportOf(study, [payloads, clear, spare], { id, secret }, relay) {
  const content = { format: "ldpkit.report/1", id, ...versionOf(study), payloads, ...clear };
  const body = canonicalJson(content) + " ".repeat(spare);
  // A mebibyte, or the largest relayed request less 4 KiB for its headers, as in ldp_client/device/transport.py.
  check(utf8(body).length <= (relay ? 252 : 1024) << 10);
  return { id, secret, body, answered: Object.keys(payloads) };
}

/** Of at most 34,060 bytes, those of 128 features' products: so many arguments a function may have anywhere. */
const base64 = (bytes) => btoa(String.fromCharCode(...bytes));
