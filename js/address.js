/** The addresses of collectors. Devices in Python read them alike: tests/golden/vectors/origins.json. */

import { fail } from "./errors.js";

// https, or http on this machine. ASCII, without user information, query and fragment. Some runtimes have no URL class.
const SERVER = /https:\/\/([\w-]+(\.[\w-]+)*|\[[\da-f:]+])|http:\/\/(localhost|127\.0\.0\.1|\[::1])/;
const BASE = new RegExp(`^(${SERVER.source})(:[1-9]\\d{0,4})?(/[!"$->A-[\\]-~]*)?$`, "i");

/** One spelling of a collector's base URL. Throws LdpkitError "input". */
export function safeBaseOf(url, field = "collector") {
  const [, server, , , , port = "", path = ""] = BASE.exec(url) ?? [];
  if (!server || port.slice(1) > 65535) fail("input", "must be an https URL", field);
  const start = server.toLowerCase();
  const isDefault = port === (start[4] === "s" ? ":443" : ":80");
  return start + (isDefault ? "" : port) + path.replace(/\/+$/, "");
}

/** Scheme, host and port of a collector's URL, as `new URL(url).origin` spells them. Throws LdpkitError "input". */
export const originOf = (url, field) => safeBaseOf(url, field).split("/", 3).join("/");
