/** What `<ldp-study>` says of its frame: never what is asked or answered in it. */
export type FrameState = "loading" | "ready" | "done" | "blocked" | "refused";

/**
 * `<ldp-study src="https://collect.example.org/s/habits" lang="fr" invitation="CODE">`: a study's page in a frame of its
 * collector's origin. Importing the module defines the element. Each state but "loading" comes as an event of that name
 * that bubbles; "done" once nothing is left to do in the frame, whatever the person did there.
 */
export class StudyElement extends HTMLElement {
  readonly state: FrameState;
}

declare global {
  interface HTMLElementTagNameMap {
    "ldp-study": StudyElement;
  }
}
