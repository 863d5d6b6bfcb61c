import { fetchStudy, openDevice } from "ldpkit";
import { useEffect, useRef, useState } from "react";

/**
 * A study of one question, asked and sent in an app of your own.
 *
 * The true answer stands in its input alone, which React does not control: no state, props or callback has it, so that
 * neither developer tools, nor error reports, nor a store that is kept elsewhere can. It goes from the input to
 * `device.answer`, and the input goes with the form.
 *
 * collector: its base URL. study: the study's id. maxEpsilon: what people who use this app may tell all of its studies.
 * ledger: of apps that are not in a browser. onDone: called with nothing, whatever was answered, once a report was sent.
 */
export function StudyQuestion({ collector, study, maxEpsilon, ledger, onDone }) {
  const [now, setNow] = useState({ step: "loading" });
  const isBusy = useRef(false);
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
    const next = await flush(now);
    if (next.step === "sent") onDone?.();
    return next;
  };
  const Step = STEPS[now.step];
  return (
    <section aria-label={now.study?.title}>
      <Step {...now} onAnswer={doing((form) => answer(now, form))} onSend={doing(send)} />
      {now.why && <p role="alert">{now.why}</p>}
    </section>
  );
}

async function open({ collector, study: id, maxEpsilon, ledger }) {
  const device = await openDevice({ collector, maxEpsilon, ledger });
  // What waits from an earlier visit leaves, also if the study is closed by now.
  const study = await fetchStudy(device, id).finally(() => device.flush({ attempts: 1 }));
  const [asked, ...others] = study.questions;
  if (others.length || study.public || !canAsk(asked)) throw new Error("this form asks one number or choice, once");
  return look({ device, study, asked });
}

/** Neither repeated questions, nor "prefer not to say", nor choices without labels. */
const canAsk = ({ ask, choices, refusal, mechanism }) =>
  mechanism.name !== "memoized" && !refusal && (ask === "number" || Array.isArray(choices));

/** What comes next, by the device's own ledger: also after a reload. */
async function look({ device, study, asked }) {
  const { answered, report } = await device.status(study);
  return { device, study, asked, step: answered ? (report?.state ?? "before") : "ask", report };
}

async function answer(now, form) {
  const given = new FormData(form).get("answer");
  // It may have been closed since the form was shown: then no noise is drawn.
  await fetchStudy(now.device, now.study.id);
  await now.device.answer(now.study, { [now.asked.id]: now.asked.ask === "number" ? read(given) : given });
  return look(now);
}

/** Once: what could not leave now leaves when the form is shown again. */
async function flush(now) {
  await now.device.flush({ attempts: 1 });
  return look(now);
}

/** In words for people; an error of ldpkit never says what was answered. */
const reasonOf = ({ message }) => message;

function Ask({ study, asked, onAnswer }) {
  return (
    <form onSubmit={onAnswer} autoComplete="off">
      <fieldset>
        <legend>{asked.text ?? study.title}</legend>
        {asked.ask === "number" ? <NumberInput asked={asked} /> : asked.choices.map(choiceOf)}
      </fieldset>
      <p>Noise is added on this device, once. You see what it makes of your answer before anything is sent.</p>
      <button>Draw the noise</button>
    </form>
  );
}

// As text: a browser whose language has no decimal comma makes 75 of 7,5 in a field for numbers. 1.234 and 1,234 have
// two readings each.
const NUMBER = "(?!-?[1-9][0-9]{0,2}[.,][0-9]{3}$)-?[0-9]+([.,][0-9]+)?";
const FORM = "such as 7.5 or 7,5; for 1.234 write 1234 or 1.2340";
const read = (typed) => Number(typed.replace(",", "."));

function NumberInput({ asked: { bounds, unit } }) {
  const [low, high] = bounds.map(([, , nearest]) => nearest);
  // Of phones' keypads for decimals some have no minus.
  const keys = low < 0 ? "text" : "decimal";
  return (
    <label>
      <input name="answer" inputMode={keys} pattern={NUMBER} title={FORM} spellCheck={false} required /> {unit} ({low} to {high}; beyond counts as the end)
    </label>
  );
}

const choiceOf = (label) => (
  <label key={label}>
    <input name="answer" type="radio" value={label} required /> {label}
  </label>
);

const Held = ({ report, onSend }) => (
  <form onSubmit={onSend}>
    <p>This is all that would leave. Chance decided what it says.</p>
    <pre translate="no">{report.body}</pre>
    <button>I agree: send it</button>
  </form>
);

const says = (words) => () => <p role="status">{words}</p>;

const STEPS = {
  loading: says("One moment."),
  failed: says("Nothing can be asked here now."),
  ask: Ask,
  held: Held,
  queued: ({ onSend }) => (
    <form onSubmit={onSend}>
      <p role="status">It could not leave yet.</p>
      <button>Try again</button>
    </form>
  ),
  sent: says("It was sent. Thank you."),
  refused: says("The collector does not take it any more."),
  withdrawn: says("It was withdrawn."),
  ticketless: says("This study is by ticket."),
  // The report was withdrawn: the ledger has none.
  before: says("You answered here before. A question is asked once."),
};
