/**
 * <LdpStudy collector study maxEpsilon>: a study's questions in a React app, answered and sent by the app's own device.
 *
 * The true answers are only in inputs that React does not control. No state, props or callback has them, so neither
 * developer tools nor error reports nor a store can show them. They go from the inputs to `device.answer`.
 */

import { createElement as h, useEffect, useRef, useState } from "react";
import { fetchStudy, openDevice } from "./index.js";

const WORDS = {
  loading: "One moment.",
  failed: "Nothing can be asked here now.",
  asks: "Who asks:",
  noise: "Noise is added on this device, once. You see what it makes of your answer before anything is sent.",
  draw: "Draw the noise",
  held: "This is all that would leave. Chance decided what it says.",
  send: "I agree: send it",
  queued: "It could not leave yet.",
  retry: "Try again",
  sent: "It was sent. Thank you.",
  refused: "The collector does not take it any more.",
  withdrawn: "It was withdrawn.",
  ticketless: "This study is by ticket.",
  // The report was withdrawn: the ledger has none.
  before: "You answered here before. A question is asked once.",
  yes: "yes",
  no: "no",
  to: "to",
  beyond: "beyond counts as the end",
};

export function LdpStudy({ collector, study, maxEpsilon, ledger, words, onDone }) {
  const [now, setNow] = useState({ step: "loading" });
  const isBusy = useRef(false);
  const texts = { ...WORDS, ...words };
  useEffect(() => {
    let isLeft = false;
    open({ collector, study, maxEpsilon, ledger }).then(
      (opened) => isLeft || setNow(opened),
      (error) => isLeft || setNow({ step: "failed", why: reasonOf(error) }),
    );
    return () => {
      isLeft = true;
    };
  }, [collector, study, maxEpsilon, ledger]);

  const doing = (work) => async (event) => {
    event.preventDefault();
    // The second click of a double click asks for nothing new.
    if (isBusy.current) return;
    isBusy.current = true;
    try {
      setNow(await work(event.currentTarget));
    } catch (error) {
      setNow((current) => ({ ...current, why: reasonOf(error) }));
    } finally {
      isBusy.current = false;
    }
  };
  const send = async () => {
    await now.device.consent(now.report);
    // Once: what could not leave now leaves when the form is shown again.
    await now.device.flush({ attempts: 1 });
    const next = await look(now);
    if (next.step === "sent") onDone?.();
    return next;
  };
  const Step = STEPS[now.step] ?? Says;
  return h(
    "section",
    { "aria-label": now.study?.title },
    h(Step, { ...now, texts, onAnswer: doing((form) => answer(now, form)), onSend: doing(send) }),
    now.why && h("p", { role: "alert" }, now.why),
  );
}

async function open({ collector, study: id, maxEpsilon, ledger }) {
  const device = await openDevice({ collector, maxEpsilon, ledger });
  // What waits from an earlier visit leaves, also if the study is closed by now.
  const study = await fetchStudy(device, id).finally(() => device.flush({ attempts: 1 }));
  if (study.public || study.sample_one_question || !study.questions.every(canAsk)) {
    throw new Error("LdpStudy asks numbers and choices, once: show this study with <ldp-study>");
  }
  return look({ device, study });
}

/** Neither repeated questions, nor "prefer not to say", nor choices without labels. */
const canAsk = ({ ask, choices, refusal, mechanism }) =>
  mechanism.name !== "memoized" && !refusal && (ask === "number" || Array.isArray(choices));

/** What comes next, by the device's own ledger: also after a reload. */
async function look({ device, study }) {
  const { answered, report } = await device.status(study);
  return { device, study, step: answered ? (report?.state ?? "before") : "ask", report };
}

async function answer(now, form) {
  const given = new FormData(form);
  const read = ({ id, ask }) => [id, ask === "number" ? Number(given.get(id).replace(",", ".")) : given.get(id)];
  // It may have been closed since the form was shown: then no noise is drawn.
  await fetchStudy(now.device, now.study.id);
  await now.device.answer(now.study, Object.fromEntries(now.study.questions.map(read)));
  return look(now);
}

/** In words for people; an error of ldpkit never says what was answered. */
const reasonOf = (error) =>
  error instanceof TypeError
    ? `The collector cannot be reached, or does not list ${location.origin} in its setting cors_origins.`
    : error.message;

function Ask({ study, texts, onAnswer }) {
  return h(
    "form",
    { onSubmit: onAnswer, autoComplete: "off" },
    study.owner && h("p", {}, `${texts.asks} ${[study.owner, study.contact].filter(Boolean).join(", ")}`),
    study.ethics && h("p", {}, study.ethics),
    study.purpose && h("p", {}, study.purpose),
    study.questions.map((asked) =>
      h(
        "fieldset",
        { key: asked.id },
        h("legend", {}, asked.text ?? (study.questions[1] ? asked.id : study.title)),
        asked.ask === "number" ? h(NumberInput, { asked, texts }) : asked.choices.map(choiceOf(asked, texts)),
      ),
    ),
    h("p", {}, texts.noise),
    h("button", {}, texts.draw),
  );
}

// As text: a browser whose language has no decimal comma makes 75 of 7,5 in a field for numbers. 1.234 and 1,234 have
// two readings each.
const NUMBER = "(?!-?[1-9][0-9]{0,2}[.,][0-9]{3}$)-?[0-9]+([.,][0-9]+)?";
const FORM = "7.5; 7,5; 1234; 1.2340";

function NumberInput({ asked: { id, bounds, unit = "" }, texts }) {
  const [low, high] = bounds.map(([, , nearest]) => nearest);
  // Of phones' keypads for decimals some have no minus.
  const inputMode = low < 0 ? "text" : "decimal";
  const field = { name: id, inputMode, pattern: NUMBER, title: FORM, spellCheck: false, required: true };
  return h("label", {}, h("input", field), ` ${unit} (${low} ${texts.to} ${high}; ${texts.beyond})`);
}

const choiceOf = ({ id, ask }, texts) => (label) =>
  h(
    "label",
    { key: label },
    h("input", { name: id, type: "radio", value: label, required: true }),
    ` ${ask === "yes_no" ? texts[label] : label}`,
  );

const Held = ({ study, report, texts, onSend }) =>
  h(
    "form",
    { onSubmit: onSend },
    h("p", {}, texts.held),
    h("pre", { translate: "no" }, report.body),
    study.consent && h("p", {}, study.consent),
    h("button", {}, texts.send),
  );

const Queued = ({ texts, onSend }) =>
  h("form", { onSubmit: onSend }, h("p", { role: "status" }, texts.queued), h("button", {}, texts.retry));

const Says = ({ step, texts }) => h("p", { role: "status" }, texts[step]);

const STEPS = { ask: Ask, held: Held, queued: Queued };
