import type { ReactElement } from "react";
import type { Ledger } from "./index.js";

/** What the component says to people; what is left out is in English. */
export type Words = {
  readonly [text in
    | "loading" | "failed" | "asks" | "noise" | "draw" | "held" | "send" | "queued" | "retry" | "sent" | "refused"
    | "withdrawn" | "ticketless" | "before" | "yes" | "no" | "to" | "beyond"]?: string;
};

export interface LdpStudyProps {
  /** The collector's base URL. It lists the app's origin in `cors_origins`. */
  readonly collector: string;
  /** The study's id. */
  readonly study: string;
  /** For life: what people who use this app may tell all of its studies, in nats. */
  readonly maxEpsilon: string;
  /** Of apps that are not in a browser. */
  readonly ledger?: Ledger;
  readonly words?: Words;
  /** Called without arguments, whatever was answered, once a report was sent. */
  readonly onDone?: () => void;
}

/**
 * A study of numbers and choices, each asked once, in an app that uses React 18 or later. React holds no answer: no
 * state, props or callback has it. Other studies show an alert: use `<ldp-study>` for them.
 */
export function LdpStudy(props: LdpStudyProps): ReactElement;
