/** A form of several parts, of which one is shown at a time, and how far the person has come. */

import { say } from "./words.js";

// With more fields than these a person likes to know how many are left.
const MANY = 10;
const FIRST = 0;
let shown = FIRST;

const form = () => document.getElementById("answers");
const parts = () => [...form().querySelectorAll(".part")];

/** Whether what is shown is the last part, as it is of a form without parts: then all can be looked at. */
export const isLast = () => shown >= parts().length - 1;

/** Show the part at that place, and behind the last one what ends the form. */
export function turnTo(place) {
  shown = place;
  parts().forEach((part, index) => (part.hidden = index !== place));
  for (const end of form().querySelectorAll("[data-end]")) end.hidden = !isLast();
  document.getElementById("next").hidden = isLast();
  document.getElementById("back").hidden = place === FIRST;
}

/** Show the next part, or with −1 the one before, from its heading. */
export function turn(step) {
  turnTo(shown + step);
  foldWho();
  parts()[shown].querySelector("[tabindex]").focus();
}

/** Fold what says who asks, once the person has seen the first screen. */
export const foldWho = () => document.querySelector(".who")?.removeAttribute("open");

/** Go to a field, whichever part it is in. */
export function goTo(field) {
  const part = field.closest(".part");
  if (part) turnTo(parts().indexOf(part));
  field.focus();
}

/** Of entries those in the part that is shown; all of them at the last one. */
export function entriesHere(entries) {
  if (isLast()) return entries;
  const here = new Set([...parts()[shown].querySelectorAll("[name]")].map(({ name }) => name));
  return entries.filter(({ name }) => here.has(name));
}

/** Say how far the person has come, where the form is long or has parts. */
export function showProgress(entries) {
  const count = parts().length;
  const done = entries.filter(({ problem }) => !problem).length;
  const [bar, words] = document.getElementById("progress").children;
  bar.max = entries.length;
  bar.value = done;
  const part = count > 1 ? [say("Part {place} of {parts}", { place: shown + 1, parts: count })] : [];
  words.textContent = [...part, say("answered: {done} of {all}", { done, all: entries.length })].join(" · ");
  document.getElementById("progress").hidden = count < 2 && entries.length <= MANY;
}
