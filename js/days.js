/** The days on which a study is open. */

import { fail } from "./errors.js";
import { check, isText } from "./shapes.js";

const DAY_MS = 864e5;

/** Reads a study's days, and gives it `refuseToday`. Throws LdpkitError "study". */
export function read(study) {
  for (const key of ["opens", "closes"]) check(!(key in study) || isDay(study[key]), key);
  check(!(study.opens > study.closes), "closes");
  study.refuseToday = () => refuseOutside(study);
}

function isDay(value) {
  const midnight = `${value}T00:00:00.000Z`;
  // No date of what is not a day: toJSON gives null.
  return isText(value) && value > "0001" && new Date(midnight).toJSON() === midnight;
}

/** By the person's day. West of the study's author the first one comes later; a device that is early does no harm. */
function refuseOutside({ opens, closes }) {
  const here = Date.now() - 6e4 * new Date().getTimezoneOffset();
  const day = (shift) => new Date(here + shift * DAY_MS).toISOString().slice(0, 10);
  // A comparison with an end that the study does not have is false.
  if (day(1) < opens) fail("closed", `opens on ${opens}`);
  if (day(0) > closes) fail("closed", `closed on ${closes}`);
}
