import type { ProductPromise } from '../promise.ts'

/** A command leaves at once, or after a ping that was answered within a second. */
const COMMAND_MS = 2000
/** A page of the fleet gives up a call after twelve seconds, and no call is repeated more than twenty later than it failed. */
const CALL_MS = 33_000
/** The names of purchases on sockets. */
const PURCHASE = /-b\d+$/

/** A page that stood still does not order what its user has long given up. */
export const pagesSendInTime: ProductPromise = {
  name: 'pages-send-in-time',
  sentence:
    'The browser package sends an order soon after the click or not at all, though the page stood still or had no network meanwhile.',
  isTimed: false,
  check({ leavings }) {
    return {
      judged: leavings.map(({ at }) => at),
      violations: leavings
        .filter(({ order, clickedAt, at }) => at - clickedAt > (PURCHASE.test(order) ? COMMAND_MS : CALL_MS))
        .map(({ user, order, clickedAt, at }) => ({
          at,
          seen: `the page of ${user} sent ${order} ${Math.round(at - clickedAt)} ms after the click`,
        })),
    }
  },
}
