/** The device library for pages of other sites, in one file: ldpkit.js, as `make page` bundles it. */

export * from "../../js/index.js";
export { fetchStudy } from "../../js/fetching.js";
export { oblivious } from "../../js/oblivious.js";
