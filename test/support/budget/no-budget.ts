/** A budget that has granted nothing, for registering its metrics. */
export const NO_BUDGET = {
  counts: {
    granted: { orders: 0, otps: 0, reads: 0 },
    refused: { orders: 0, otps: 0, reads: 0 },
    limited: { orders: 0, otps: 0, reads: 0 },
    alone: 0,
  },
  isAlone: false,
  left: () => [],
  leased: () => 0,
  isHeldBack: () => false,
  usersHeldBack: { orders: 0, otps: 0, reads: 0 },
}
