/** Who asks, as a study states it. ldp_client/documents/asker.py is its twin. */

import { check, isText, record, text, whole } from "./shapes.js";

const HOST = "([A-Za-z\\d-]+\\.)+[A-Za-z\\d-]+";
const WEB = `https://${HOST}(:\\d{1,5})?([/?#][-\\w.+~:/?#[\\]@!$&'()*,;=%]*)?`;
const CONTACT = new RegExp(`^(${WEB}|[-\\w.+]+@${HOST})$`);

/** One line: nothing that breaks it, nor turns the direction of what follows. */
const line = (longest) => (value, path) => {
  check(!/[\p{Cc}\u2028-\u202e\u2066-\u2069]/u.test(text(longest)(value, path)), path);
  return value;
};

function contact(value, path) {
  check(isText(value) && value.length <= 200 && CONTACT.test(value), path);
  return value;
}

const SHAPES = { owner: line(200), contact, ethics: line(1000), retention: record({ days: whole(1, 36500) }) };

/** Throws LdpkitError "study" unless what a study says of who asks is good. */
export function read(study) {
  for (const key in SHAPES) if (key in study) SHAPES[key](study[key], key);
}
