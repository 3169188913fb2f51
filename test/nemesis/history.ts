import type { AuditLine, Leftover, Sample } from './states.ts'

/** What pages do. `login` and `signup` are navigations through the provider, `socket` is the opening of one. */
export type CallKind = 'login' | 'signup' | 'logout' | 'read' | 'order' | 'socket'

/** A request of a page, and what the page was told. All times are ms by the observer's clock. */
export interface Call {
  readonly user: string
  /** The login whose session it used: the grant of the provider. Undefined without one. */
  readonly session: string | undefined
  /** The instance that it went to; undefined for navigations, which a balancer passes on. */
  readonly instance: number | undefined
  readonly kind: CallKind
  readonly path: string
  /** Its Idempotency-Key, if it is an order. */
  readonly key: string | undefined
  readonly at: number
  /** When the page was told, or has given up; undefined while it waits. */
  until: number | undefined
  /** `ok`, the code of a problem or of a close frame's reason, a status without a code, or `no_answer`. */
  result: string
  /** The body of the response, with which a page is told an outcome. */
  body: string
  /** The session that this login has begun. */
  began: string | undefined
  /** The name of the request that gave the answer, as it is in logs; undefined if there was none. */
  requestId: string | undefined
  /** Whether the response says that it is a recorded one. */
  isReplayed: boolean
}

/** A socket of a page, once it was open. */
export interface Socket {
  readonly user: string
  readonly session: string | undefined
  readonly instance: number
  readonly kind: 'public' | 'trading'
  readonly openedAt: number
  closedAt: number | undefined
  /** The code of the close frame and its reason. */
  closed: { readonly code: number; readonly reason: string } | undefined
  /** Whether the page closed it. */
  isClosedByPage: boolean
  readonly sent: Message[]
  readonly received: Message[]
}

/** A message on a socket of a page. */
export interface Message {
  readonly at: number
  readonly text: string
}

/** A call that upstream has executed or refused: the truth. */
export interface Executed {
  readonly at: number
  /** When its last byte had left the server; it may have waited on the way since. */
  readonly sentAt: number
  readonly instance: number | undefined
  /** The login whose token it carried. */
  readonly session: string | undefined
  readonly method: string
  readonly path: string
  readonly key: string | undefined
  readonly status: number
  readonly request: string
  readonly response: string
}

/** A message that has reached upstream on a socket: the truth. */
export interface Delivered {
  readonly at: number
  /** When it had left the server, at the earliest. */
  readonly sentAt: number
  readonly instance: number | undefined
  readonly session: string | undefined
  readonly text: string
}

/** A tick of upstream's: the truth. */
export interface Tick {
  readonly at: number
  readonly symbol: string
  readonly epoch: number
  readonly quote: number
}

/** A login or a sign-up, as far as the browser got. */
interface Start {
  readonly user: string
  readonly kind: 'login' | 'signup'
  /** The values of a partner with which it should come to the provider, as a query in a fixed order; '' without one. */
  readonly attribution: string
  /** The state with which the browser was sent to the provider. */
  readonly state: string
}

/** An authorization request that has reached the provider: the truth. */
interface Authorization {
  readonly at: number
  readonly state: string
  /** The values of a partner that it had, in the same form. */
  readonly attribution: string
}

/** A window of the upstream budget. */
export interface Budget {
  readonly calls: number
  readonly windowMs: number
}

/** The end of a session that somebody has asked for. */
export interface Ending {
  readonly user: string
  readonly session: string
  /**
   * `login`: its browser has logged in again. `limit`: nobody has, but its time will be over then. `provider`: its user has logged
   * out there, and the provider has told the server.
   */
  readonly by: 'user' | 'operator' | 'login' | 'limit' | 'provider'
  readonly askedAt: number
  /** When the server said that the session has ended; undefined if it never did, though it may have. */
  confirmedAt: number | undefined
  /** When no token of it could be used any more, as far as the observer has seen. */
  revokedAt?: number
}

/** A transfer that a user wants, which the browser package makes. */
export interface Intention {
  readonly user: string
  readonly session: string | undefined
  /** Who is to get it: nobody else. */
  readonly recipient: string
  readonly at: number
  until: number | undefined
  /** How often they want it, with the same words only where the package remembers it. */
  times: 1 | 2 | 3
  /** What the package says. */
  outcome: 'made' | 'not made' | 'unknown'
}

/** What a page of the browser package was told of a purchase on its socket, or has found out. */
export interface Told {
  readonly user: string
  readonly at: number
  /** The name of the purchase. */
  readonly purchase: string
  /** `not made`: it was refused, or not sent. `unknown`: that is all that can be said. */
  readonly is: 'made' | 'not made' | 'unknown'
  /** The id of the contract, as the page has it. */
  readonly contractId?: string
}

/** A pause of orders, by an operator. */
export interface Pause {
  /** Whose orders, as upstream names them; undefined: those of all users. */
  readonly subject?: string | undefined
  readonly askedAt: number
  /** When the server said that all instances obey; undefined if it never did, though they may. */
  confirmedAt: number | undefined
  /** When one instance said that it obeys, and that the others cannot learn of it yet. */
  here?: { readonly instance: number | undefined; readonly at: number }
  liftAskedAt: number | undefined
  liftedAt: number | undefined
}

/** Whom a fault may concern. A call is concerned if it fits all members that are there; a fault may have several. */
export interface Touch {
  readonly instances?: readonly number[]
  readonly users?: readonly string[]
  readonly kinds?: readonly CallKind[]
  /** What those calls may be told; anything if it is left out. */
  readonly results?: readonly string[]
  /** How long after the end of the fault that may be, if that differs (ms). */
  readonly settleMs?: number
}

/** A time in which a fault was on. */
export interface FaultPeriod {
  readonly name: string
  /** What it did this time, for the timeline. */
  readonly note: string
  readonly from: number
  to: number | undefined
  /** How long after its end it still explains what happens (ms). */
  readonly settleMs: number
  readonly touches: readonly Touch[]
}

/** A time in which something that wanted to run could not. */
interface Delay {
  /** `harness`, or an instance. */
  readonly of: string
  readonly at: number
  readonly ms: number
}

/** All that happened in a run. A hand-made one is as good for a promise as that of a run. */
export interface History {
  readonly calls: Call[]
  readonly sockets: Socket[]
  readonly executed: Executed[]
  readonly delivered: Delivered[]
  /** Requests to the token endpoint that named a grant. */
  readonly tokenCalls: { readonly at: number; readonly session: string | undefined; readonly isGranted: boolean }[]
  /** What the provider was asked for by browsers that went there, as far as they know. */
  readonly starts: Start[]
  readonly authorizations: Authorization[]
  readonly ticks: Tick[]
  /** The windows of the upstream budget; none without one. */
  readonly budgets: Budget[]
  readonly endings: Ending[]
  readonly pauses: Pause[]
  readonly intentions: Intention[]
  /** The contract of each purchase on a socket: the truth. */
  readonly bought: { readonly at: number; readonly purchase: string; readonly contractId: string }[]
  readonly told: Told[]
  /** When an order has left a page of the browser package, and when its user had clicked. */
  readonly leavings: {
    readonly user: string
    readonly order: string
    readonly clickedAt: number
    readonly at: number
  }[]
  /** Trading sockets of the browser package, wherever a balancer has sent them. */
  readonly pageSockets: { readonly at: number; closedAt: number | undefined }[]
  /** What instances have said of themselves. */
  readonly readiness: { readonly at: number; readonly instance: number; readonly isReady: boolean }[]
  readonly faults: FaultPeriod[]
  /** When instances were killed. */
  readonly kills: { readonly at: number; readonly instance: number }[]
  readonly delays: Delay[]
  readonly samples: Sample[]
  /** When an operator has put another secret first. Until they have it, instances call a session by different names in their logs. */
  readonly rotations: number[]
  /** Both are known at the end of a run. */
  readonly audits: AuditLine[]
  readonly leftovers: Leftover[]
}

/** A history in which nothing has happened yet. */
export function emptyHistory(): History {
  return {
    calls: [],
    sockets: [],
    executed: [],
    delivered: [],
    tokenCalls: [],
    starts: [],
    authorizations: [],
    ticks: [],
    budgets: [],
    endings: [],
    pauses: [],
    intentions: [],
    bought: [],
    told: [],
    leavings: [],
    pageSockets: [],
    readiness: [],
    faults: [],
    kills: [],
    delays: [],
    samples: [],
    rotations: [],
    audits: [],
    leftovers: [],
  }
}

/**
 * How much more time something may take than was promised, because what does it could not run.
 * @param instance the one that does it; any may have if it is undefined
 */
export function slackMs({ delays }: History, from: number, to: number, instance?: number): number {
  const concerned = delays.filter(({ of, at, ms }) => {
    const isOfOther = instance !== undefined && of !== 'harness' && of !== `instance ${instance}`
    return !isOfOther && at > from && at - ms < to
  })
  return concerned.reduce((sum, { ms }) => sum + ms, 0)
}
