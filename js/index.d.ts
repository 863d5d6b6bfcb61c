/** An exact fraction; with its nearest float if it was read from a document. */
export type Rational = readonly [numerator: bigint, denominator: bigint, nearest?: number];
export type Bounds = readonly [low: Rational, high: Rational];

export type ErrorCode =
  /** The study's document is wrong, or asks what this module does not know, or its report is too large. */
  | "study"
  /** An answer does not fit its question; nothing was drawn. */
  | "answer"
  /** This device has answered the question before. */
  | "answered"
  /** The answers would cost more than the person's budget has left. */
  | "budget"
  /** It is not one of the study's days, or its collector takes no reports. */
  | "closed"
  /** The relay says, without proof, that the collector no longer has the key that the app has. */
  | "key"
  /** What is kept here cannot be used; nothing was answered. */
  | "ledger"
  /** A part of this module did not load: try again, then reload the page. */
  | "module"
  /** An argument is wrong. */
  | "input";

export class LdpkitError extends Error {
  readonly code: ErrorCode;
  /** Dotted path of what is wrong, "" for all of it. */
  readonly field: string;
  /** What is wrong; of code "answer" a word for it, such as "choice" or "missing". */
  readonly problem: string;
}

/** What a study states of a mechanism, such as "laplace". epsilon: in nats; of a memoized question for all reports. */
export interface Stated {
  readonly name: string;
  readonly epsilon: Rational;
  readonly delta?: Rational;
  readonly [parameter: string]: unknown;
}

interface Asked {
  readonly id: string;
  readonly text?: string;
  readonly mechanism: Stated;
}

export interface NumberQuestion extends Asked {
  readonly ask: "number";
  readonly bounds: Bounds;
  /** What the number counts, such as "hours". */
  readonly unit?: string;
  /** Which share of epsilon says whether there is a number: null is an answer too then. */
  readonly refusal?: { readonly share: Rational };
}

export interface ChoiceQuestion extends Asked {
  readonly ask: "choice" | "yes_no";
  /** Labels; or, for choices by count, the whole numbers below `length`, answered as numbers. */
  readonly choices: readonly (string | null)[] | { readonly length: number };
  /** Whether the labels are a scale, from its low end to its high one. */
  readonly ordered?: boolean;
  /** Whether null, "prefer not to say", is an answer too: the last of the choices then. */
  readonly refusal?: boolean;
}

export interface RecordQuestion extends Asked {
  readonly ask: "record";
  readonly features: readonly Field[];
  readonly response: Field;
}

/** A number with bounds, perhaps cut into bins; else a yes/no or a choice, as `ask` says. */
export interface Field {
  readonly id: string;
  readonly text?: string;
  readonly ask?: "yes_no" | "choice";
  readonly bounds?: Bounds;
  readonly cuts?: readonly Rational[];
  readonly unit?: string;
  readonly choices?: readonly string[];
}

export type Question = NumberQuestion | ChoiceQuestion | RecordQuestion;

/** What a report says in clear. Numbers have bounds and step, choices have labels. */
export interface PublicField extends Field {
  readonly step?: Rational;
  /** Where the ticket carries the value, so that it may be left out of the answers. */
  readonly source?: "ticket";
  /** From an answer to what is sent. Throws LdpkitError "answer" for what is none of the field's values. */
  toSend(answer: string | number): string;
}

/** How reports leave so that nobody can join a person and a report. */
export interface Channel {
  /** A report leaves at a moment drawn from the window of so many hours after that in which it was ready. */
  readonly batches: { readonly hours: number };
  /** An issuer, at a base URL, gives a blind token for a ticket, once; the collector takes one a report. */
  readonly tickets?: {
    readonly issuer: string;
    /** Each with the public values that it stands for; in base64. */
    readonly keys: readonly { readonly key: string; readonly public?: { readonly [field: string]: string } }[];
  };
}

export interface Study {
  readonly id: string;
  readonly version: number;
  readonly title: string;
  readonly purpose?: string;
  /** Who asks, and an e-mail or https address of theirs. */
  readonly owner?: string;
  readonly contact?: string;
  readonly ethics?: string;
  /** What a person agrees to, in the owner's own words. */
  readonly consent?: string;
  /** For how many days reports are kept: from `closes` on, else from the day each arrived. */
  readonly retention?: { readonly days: number };
  /** Days, YYYY-MM-DD. */
  readonly opens?: string;
  readonly closes?: string;
  /** Whether a report answers one question only, drawn whatever the answers are. */
  readonly sample_one_question?: boolean;
  readonly questions: readonly Question[];
  /** Which questions are shown together, in order. any_of: the title is the question, and any box may be ticked. */
  readonly sections?: readonly {
    readonly title: string;
    readonly questions: readonly string[];
    readonly any_of?: boolean;
  }[];
  /** Sent as they are: their values stand in Answers beside those to questions. */
  readonly public?: readonly PublicField[];
  readonly channel?: Channel;
  readonly document: unknown;
  /** The SHA-256 of its canonical JSON text, in hexadecimal. */
  readonly digest: string;
}

/** Parse and validate a study document, as text or bytes of UTF-8. Rejects with LdpkitError "study" or "module". */
export function parseStudy(source: string | Uint8Array): Promise<Study>;

/**
 * The study that the device's collector publishes under that id, fetched by the device's transport. Rejects with
 * LdpkitError "closed" if the collector says that the study takes no reports; "input" if it has none of that id or sends
 * another; "study" as `parseStudy`; with the transport's error if no answer comes.
 */
export function fetchStudy(device: Device, id: string): Promise<Study>;

type Value = number | boolean | string;
/** Numbers are finite; yes/no is a boolean, "yes" or "no"; null is "prefer not to say", where `refusal` offers it. */
export type Answer = Value | { readonly [field: string]: Value } | null;
/** By question, and by public field. */
export type Answers = { readonly [question: string]: Answer };

/**
 * The mechanism of a question, to show what its noise does to invented answers: only a device answers once. Throws
 * LdpkitError "study" where ε or δ is too small, `perturb` "answer" for an answer that does not fit. payloadSize: bytes,
 * the same for every answer.
 */
export function mechanismFor(question: Question): {
  readonly payloadSize: number;
  perturb(answer: Answer): Uint8Array;
};

/**
 * held: written, waits for consent. queued: may leave. ticketless: the collector takes it with an unused
 * ticket only. sent: the collector has it. refused: it will not take it; it may have it where the answer to an
 * earlier attempt was lost. withdrawn: its body is wiped, and its deletion is asked for until that is acknowledged.
 */
export type ReportState = "held" | "queued" | "ticketless" | "sent" | "refused" | "withdrawn";

/** A report in the ledger; what else stands there is ldpkit's own. */
export interface StoredReport {
  readonly id: string;
  readonly study: string;
  readonly version: number;
  readonly digest: string;
  /** The origin of the collector that the report was made for: the only one that it is sent to, unless it moved. */
  readonly origin: string;
  readonly state: ReportState;
  /** The bytes that leave, as text; "" once withdrawn. */
  readonly body: string;
  /** The study's last day, for which, and 30 days more, a report waits though the study was closed. */
  readonly closes?: string;
  /**
   * Why the last attempt did not settle it, "" once it is settled: "unreachable", "problem STATUS NAME", "foreign STATUS"
   * (not of the collector), or "key" as the error; behind "issuer " for a token.
   */
  readonly reason?: string;
  /** The study's, where it has one: then a report waits for its token, if that has any, and for its moment. */
  readonly channel?: Channel;
  /** By which of the study's keys a token was asked for: show the person their stratum, which the collector sees. */
  readonly asked?: { readonly place: number };
  /** When it leaves, in milliseconds since 1970; not before it is ready. */
  readonly due?: number;
}

/**
 * What was told to each study of each collector, in the order of first answers. limit: the budget. All epsilons are in
 * nats. title, owner ("" for none) and questions (their texts, else ids) are in the study's own language. days:
 * YYYY-MM-DD, by this device's clock. states: of the reports that are left.
 */
export interface Told {
  readonly limit: number;
  readonly epsilon: number;
  readonly delta: number;
  readonly studies: readonly {
    readonly study: string;
    readonly title: string;
    readonly owner: string;
    readonly origin: string;
    readonly days: readonly string[];
    readonly questions: readonly string[];
    readonly epsilon: number;
    readonly delta: number;
    readonly states: readonly ReportState[];
  }[];
}

/** Makes a device's requests as `fetch` does; `oblivious` makes one. */
export interface Transport {
  (url: string, options: RequestInit): Promise<Response>;
  /** Of the relay, if there is one: then studies with an issuer of tickets and reports above 252 KiB are refused. */
  readonly relay?: string;
}

/**
 * A transport by which all requests of a device go, encrypted for one collector, through a relay (RFC 9458). The relay
 * sees who sends, when, and one of a few sizes. The collector sees the content, and when the relay forwards it.
 *
 * relay: its URL; https, or http on this machine. keys: the gateway's key configuration in base64, as
 * `ldpkit ohttp` prints it. Rejects with LdpkitError "input" if either is wrong or the platform lacks X25519; the
 * transport's requests reject with "key".
 */
export function oblivious(options: { relay: string; keys: string }): Promise<Transport>;

/** Methods reject with LdpkitError "ledger" when the storage cannot be used, "module" when a part does not load. */
export interface Device {
  /** The base URL of its collector, in the spelling that is compared. */
  readonly collector: string;
  readonly transport: Transport;
  /**
   * Perturb every answer once and write spend, permanent answers and report durably, in one transaction; the
   * report is held. ticket: what the operator of an invited study handed out.
   * Rejects with LdpkitError "input", "answer", "closed", "answered", "budget" or "study"; then nothing is written.
   * "study": also for a report above 1 MiB, and for what the transport's relay does not take. "answered": also for a
   * version below one that was answered, another document of that version, and a public field with the id of a question
   * that this study asked before.
   */
  answer(study: Study, answers: Answers, ticket?: string): Promise<StoredReport>;
  /**
   * Whether `answer` would refuse the study as answered, and the latest report for it until that is deleted. A
   * study of memoized questions only can be answered once in each version.
   */
  status(study: Study): Promise<{ answered: boolean; report: StoredReport | undefined }>;
  /**
   * Draw, once for each document, the question that a study which asks one asks this device: its place, -1 for a study
   * that asks all. `answer` then takes the answer to that question alone, beside the public values.
   */
  draw(study: Study): Promise<number>;
  /** What is left of the budget, in nats. */
  epsilonLeft(): Promise<number>;
  /** What this device has told so far, from its own ledger, which never leaves it. */
  told(): Promise<Told>;
  /**
   * The person agrees that the held report of answers to exactly this study leaves; of another version's, which `status`
   * gives too, give that report. Returns it, nothing where none is left.
   */
  consent(study: Pick<Study, "digest"> | StoredReport): Promise<StoredReport | undefined>;
  /** Give what waits to be sent to a study another ticket. Rejects as `withdraw` does. */
  giveTicket(studyId: string, ticket: string): Promise<void>;
  /**
   * Wipe reports and permanent answers of a study of this collector, and have those reports deleted that may have left:
   * how many these are. What left in a batch is deleted in one. Spends stay, and no question is asked again. Rejects with
   * LdpkitError "input" for a study that this device never answered.
   */
  withdraw(studyId: string): Promise<number>;
  /**
   * Ask for deletions and send what is queued, in random order, each up to `attempts` times (5) with full jitter. For a
   * study with a channel call it again, best at every start and after `due`: requests for tokens come first. now: ask for deletions at
   * once that else leave in a batch; who watches may then tell whose they were.
   */
  flush(options?: { attempts?: number; now?: boolean }): Promise<void>;
}

type Memory = { reports: StoredReport[] };

/** Where a device durably keeps what it remembers. Its functions reject with LdpkitError "ledger". */
export interface Ledger {
  /** What `work` returns of the memory. */
  read<Result>(work: (memory: Memory) => Result): Promise<Result>;
  /** The same, once what `work` changed is on disk, in one transaction. If anything throws, nothing is changed. */
  write<Result>(work: (memory: Memory) => Result): Promise<Result>;
  /** Runs `work` while nobody else who has this ledger is in here; navigator.locks does that where it is missing. */
  alone?<Result>(work: () => Promise<Result>): Promise<Result>;
}

export interface DeviceOptions {
  /** The budget over all studies of this origin, a decimal in a string. */
  maxEpsilon: string;
  /** The same of delta, "0.0001" if left out: a loose delta lets answers through at any epsilon. */
  maxDelta?: string;
  /** The most epsilon that one collector may learn from its studies; `maxEpsilon` if left out. */
  maxEpsilonPerCollector?: string;
  /** Base URL of the collector, https or http on this machine; the page's own origin if left out. */
  collector?: string;
  /** Earlier origins of the same collector, which has moved: what was answered there counts as answered here. */
  formerly?: readonly string[];
  /** Name of the IndexedDB database, "ldpkit" if left out; or a ledger in its place. */
  name?: string;
  ledger?: Ledger | Promise<Ledger>;
  /** Makes every request of the device; the platform's `fetch` if left out. */
  transport?: Transport | Promise<Transport>;
}

/** Open this origin's device. Rejects with LdpkitError "ledger", or "input" for a wrong budget or address. */
export function openDevice(options: DeviceOptions): Promise<Device>;
