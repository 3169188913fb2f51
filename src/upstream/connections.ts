/** Maximum connections to the upstream REST API, by purpose: one purpose cannot use up the connections of another. */
export const CONNECTIONS = {
  reads: 512,
  /** For calls that may move money. */
  orders: 512,
  /** Each serves one short exchange at a time. */
  oneTimeUrls: 64,
  /** Each serves one short exchange of a login at a time. */
  identity: 16,
} as const
