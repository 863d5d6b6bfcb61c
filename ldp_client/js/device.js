/** A device: answers a study once, remembers that it did, and sends the report when the person agrees. */

import { isAt, safeBaseOf } from "./address.js";
import { fail, unloaded } from "./errors.js";
import { openLedger } from "./ledger.js";
import { systemRandom } from "./randomness.js";
import { add, nearest, parseDecimal } from "./rational.js";
import { drawIdentity, drawPayloads, originOf, reportOf } from "./report.js";
import { ZERO, costOf, leftOf, recall, refuseSpending } from "./spending.js";

/**
 * Open the device of this browser profile and origin, or of another ledger.
 *
 * maxEpsilon, maxDelta: the privacy budget over all studies, decimals in strings. collector: its base URL, in any
 * spelling. ledger: one of ledgers/, IndexedDB's of that name where it is left out.
 * Throws LdpkitError "ledger" where IndexedDB cannot be used, "input" for a bad budget.
 *
 * A report is "held" until the person consents, then "queued", then "sent", "refused" (by the collector,
 * for good) or "uninvited" until it is given an invitation that the collector takes. A "withdrawn" one
 * has lost its body and waits for its deletion.
 */
export async function openDevice({
  maxEpsilon,
  maxDelta = "0.0001",
  collector: given = globalThis.location?.origin,
  name = "ldpkit",
  ledger,
  random = systemRandom,
}) {
  const budget = { epsilon: limit(maxEpsilon, "maxEpsilon"), delta: limit(maxDelta, "maxDelta") };
  const collector = safeBaseOf(given);
  const kept = await (ledger ?? openLedger(name));
  const { read, write } = kept;
  // Another collector's study of that id is another study.
  const isIts = (study, report) => report.study === study.id && isAt(collector, report);

  /** As in changing.js, on the ledger. Throw LdpkitError "input", "module" or "ledger". */
  const changing = (kind) => (...change) =>
    import("./changing.js").catch(unloaded).then((its) => write((memory) => its[kind](memory, collector, ...change)));

  return {
    /**
     * Perturb every answer once and write spends, permanent answers and report durably; the report is held
     * until `consent`. Throws LdpkitError "input", "answer", "closed", "answered", "budget", "study" or "ledger"; then
     * nothing is written.
     */
    async answer(study, answers, invitation = "") {
      if (invitation !== "") invitation = (await import("./pasted.js").catch(unloaded)).read(invitation);
      await study.refuseToday?.(collector);
      // Before the transaction, which would not wait for a hash.
      const identity = await drawIdentity(random);
      return write((memory) => {
        const recalled = recall(study, memory, collector);
        refuseSpending(study, recalled, memory.spent, budget);
        const { answered, ...made } = reportOf(
          study,
          drawPayloads(study, answers, random, recalled.map(({ mechanism }) => mechanism), study.one?.place(study, memory)),
          identity,
        );
        const origin = originOf(study);
        recalled.forEach((one, index) => {
          let { asked, spend } = one;
          if (!spend) memory.spent.push((spend = { question: asked.id }));
          Object.assign(spend, origin, {
            // What it may be recognised by when it comes back in clear, in all words so far: its text, the title above it,
            // ids and texts of a record's fields. An older ledger kept the last text alone.
            text: unique(
              spend.text,
              study.told.map(({ questions: { [index]: its }, sections, title }) => [
                asked.list?.(sections) ?? its.text ?? title,
                its.text,
                [its.features, its.response].flat().map((part) => [part?.id, part?.text]),
              ]),
            ),
            asked: asked.text ?? asked.id,
            title: study.title,
            owner: study.owner,
            collector,
            days: unique(spend.days, today()),
          });
          spend.clear = study.stood?.(spend, one.spend);
          // Once more where a memoized question came to ask another thing.
          if (one.isFresh && answered.includes(asked.id)) {
            for (const kind in budget) {
              spend[kind] = add(spend[kind] ?? ZERO, costOf(study, study.one?.paid(recalled, one) ?? [one], kind));
            }
          }
        });
        const report = {
          ...origin,
          closes: study.closes,
          channel: study.channel,
          collector,
          ...made,
          state: "held",
          invitation,
          publisher: "",
        };
        // Nobody agreed to what an earlier round shows: it never leaves.
        memory.reports = [...memory.reports.filter((one) => !isIts(study, one) || one.state !== "held"), report];
        return report;
      });
    },

    /**
     * Draw the one question that a study asks this device, whatever it will answer, and keep that durably: its place. Only
     * that one is then to be answered. -1 where a study asks all.
     */
    draw: (study) => write((memory) => study.one?.draw(study, memory, random) ?? -1),

    /** Whether this device would refuse to answer the study (again), and its latest report that is left. */
    status: (study) =>
      read((memory) => ({
        answered: recall(study, memory, collector).some((one) => one.problem),
        report: memory.reports.findLast((report) => isIts(study, report)),
        apart: memory.reports.some((one) => one.channel?.oblivious) ? memory.apart : 0,
      })),

    /** What is left of the budget. */
    epsilonLeft: () => read((memory) => nearest(leftOf(budget, memory.spent, "epsilon"))),

    /** What this device has told so far, which leaves it never. */
    told: () =>
      import("./told.js").catch(unloaded).then((its) => read((memory) => its.told(memory, budget))),

    /** The person agrees that the report which answers this study, and no other version of it, leaves. */
    consent: changing("consent"),
    invite: changing("invite"),
    withdraw: changing("withdraw"),
    visited: changing("visited"),

    /** Ask for what is to be deleted, then send this collector's queued reports, byte for byte as they were written. */
    async flush(options) {
      const now = Date.now();
      // What is queued, uninvited or withdrawn waits for something; when requests were made is forgotten.
      if (await read(({ reports, apart, unseen }) => apart < now || unseen < now || reports.some(({ state }) => /^[quw]/.test(state)))) {
        await (await import("./sending.js").catch(unloaded)).send({ ...kept, collector, move: changing("move") }, options);
      }
    },
  };
}

/** The person's day, YYYY-MM-DD, by minutes in milliseconds: kept beside what was spent, it leaves the device never. */
const today = (now = new Date()) => new Date(now - 6e4 * now.getTimezoneOffset()).toISOString().slice(0, 10);

/** What there is of values and of lists in lists, each once. */
const unique = (...values) => [...new Set(values.flat(4).filter(Boolean))];

function limit(text, field) {
  const number = parseDecimal(text);
  return number?.[0] > 0n ? number : fail("input", "must be above 0", field);
}
