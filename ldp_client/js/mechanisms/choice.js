/** What all choice mechanisms share: labels, and odds that must favour the truth. */

import { fail } from "../errors.js";
import { tooSmall } from "./base.js";

/** answer → the index of the choice; a yes/no also takes true and false. */
export const choiceIndex = ({ id, ask, choices }) => (answer) => {
  const index = ask === "yes_no" && typeof answer === "boolean" ? Number(answer) : choices.indexOf(answer);
  if (index < 0) fail("answer", `must be one of its ${choices.length} choices`, id);
  return index;
};

/** The two weights of a report, for a choice that it supports and for one that it does not. */
export function checkOdds(question, often, seldom) {
  if (seldom < 1n || often <= seldom) tooSmall(question, "mechanism.epsilon");
}
