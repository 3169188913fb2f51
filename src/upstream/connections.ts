/** How many connections to the upstream REST API there may be, by what they are for: none keeps the others waiting. */
export const CONNECTIONS = {
  reads: 512,
  /** Calls that may move money. */
  orders: 512,
  /** Each is taken for one short exchange. */
  oneTimeUrls: 64,
} as const
