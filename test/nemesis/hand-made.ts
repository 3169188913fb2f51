import { emptyHistory, type Call, type Executed, type History, type Socket } from './history.ts'
import type { ProductPromise } from './promise.ts'

/** An execution of an order. */
export const executed = (more: Partial<Executed> = {}): Executed => ({
  ...{ at: 1000, sentAt: 1000, instance: 0, session: 'login', method: 'POST', path: '/transfer' },
  ...{ key: 'key', status: 201, request: '', response: 'done' },
  ...more,
})

/** An order of a page, and what it was told. */
export const order = (more: Partial<Call> = {}): Call => ({
  ...{ user: 'ada', session: 'login', instance: 0, kind: 'order', path: '/transfer', key: 'key' },
  ...{ at: 900, until: 1100, result: 'ok', body: 'done', isReplayed: false },
  ...{ began: undefined, requestId: undefined },
  ...more,
})

/** A purchase on a socket. */
export const BUY = '{"buy":1,"passthrough":{"purchase":"ada-b0"}}'
/** An open trading socket on which nothing has come. */
export const socket: Socket = {
  ...{ user: 'ada', session: 'login', instance: 0, kind: 'trading', openedAt: 0, sent: [], received: [] },
  ...{ closedAt: undefined, closed: undefined, isClosedByPage: false },
}

/** How many times a promise is broken in a history. */
export const seen = (promise: ProductPromise, history: Partial<History>): number =>
  promise.check({ ...emptyHistory(), ...history }).violations.length

/** A logout that was confirmed. */
export const ended = { user: 'ada', session: 'login', by: 'user', askedAt: 2000, confirmedAt: 2100 } as const
/** A fault of one instance. */
export const held = {
  ...{ name: 'held-redis', note: '', from: 500, to: 2500, settleMs: 1000 },
  touches: [{ instances: [0], results: ['session_store_unavailable'] }],
}
