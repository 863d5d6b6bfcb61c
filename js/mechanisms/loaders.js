/** How to load each mechanism. `make schemas` writes this file from ldp_client/documents. */

export const LOADERS = {
  laplace: () => import("./laplace.js"),
  gaussian: () => import("./gaussian.js"),
  randomized_response: () => import("./randomized_response.js"),
  oue: () => import("./oue.js"),
  sue: () => import("./sue.js"),
  subset_selection: () => import("./subset_selection.js"),
  olh: () => import("./olh.js"),
  hadamard: () => import("./hadamard.js"),
  memoized: () => import("./memoized.js"),
  gaussian_statistics: () => import("./gaussian_statistics.js"),
  gaussian_record: () => import("./gaussian_record.js"),
  sampled_products: () => import("./sampled_products.js"),
};
