/**
 * `<ldp-study src="https://collect.example.org/s/habits" lang="fr" ticket="CODE">`: a study's page in a
 * frame. Importing the module defines the element. Each state but "loading" is also a bubbling event.
 */
export class StudyElement extends HTMLElement {
  /** Of the frame, never what is asked or answered in it. */
  readonly state: "loading" | "ready" | "done" | "blocked" | "refused";
}

declare global {
  interface HTMLElementTagNameMap {
    "ldp-study": StudyElement;
  }
}
