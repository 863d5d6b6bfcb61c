/** What relays a report, and what a device may load after that. relaying.js alone imports this file. */

export const load = () => Promise.all([import("./oblivious.js"), import("./changing.js"), import("./told.js")]);
