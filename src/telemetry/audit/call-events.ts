import {
  BOUNDED,
  CAUSE,
  CLIENT,
  count,
  oneOf,
  REQUEST,
  SESSION,
  SESSION_IF_ANY,
  SUBJECT,
  tagOf,
  text,
  type AuditRule,
} from './fields.ts'

const ACCOUNT = tagOf('A keyed hash of the trading account that the path names')
const METHOD = text('The method of the call; `other` for a rare one', '^([A-Z]{3,7}|other)$')
const ROUTE = {
  description: 'The pattern of the path, without the values in it',
  type: 'string',
} as const
const KIND = oneOf(
  'The kind of socket: market data, trading by the kind of account, or the session socket',
  'public',
  'demo',
  'real',
  'trading',
  'session',
)
const SOCKET = { kind: KIND, session: SESSION_IF_ANY, client: CLIENT } as const
const OF_USER = { subject: SUBJECT } as const
const ON_ACCOUNT = { ...OF_USER, account: ACCOUNT } as const
const CLOSE_CODE = count('The close code that the browser gets (RFC 6455 §7.4)', 4999)
const REASON = text('The reason in the close frame', '^[a-z_]{1,32}$')

/** The events that browsers cause with a session, or without one. */
export const CALL_EVENTS = {
  relay_opened: {
    level: 'info',
    message: 'relay opened',
    description: 'A socket of a browser is open, all the way.',
    inRequest: false,
    required: {
      ...SOCKET,
      reqId: REQUEST,
      ms: { description: 'How long the handshake took', type: 'number', minimum: 0 },
    },
    optional: ON_ACCOUNT,
  },
  relay_ended: {
    level: 'info',
    message: 'relay ended',
    description: 'An open socket has ended.',
    inRequest: false,
    required: { ...SOCKET, reqId: REQUEST, seconds: count('How long it was open') },
    optional: { ...ON_ACCOUNT, code: CLOSE_CODE },
  },
  relay_refused: {
    level: 'info',
    message: 'relay refused',
    description: 'A socket got a close frame instead of being opened.',
    inRequest: true,
    required: { ...SOCKET, code: CLOSE_CODE, reason: REASON },
    optional: { ...ON_ACCOUNT, ...BOUNDED },
  },
  refused: {
    level: 'warn',
    message: 'refused',
    description: 'A call or a handshake from a page that may not make it, or too many of them.',
    inRequest: true,
    required: {
      code: oneOf('The code of the problem', 'csrf_rejected', 'navigation_required', 'origin_rejected', 'rate_limited'),
      method: METHOD,
      route: ROUTE,
      session: SESSION_IF_ANY,
      client: CLIENT,
    },
    optional: { ...ON_ACCOUNT, ...BOUNDED },
  },
  idempotency: {
    level: 'warn',
    message: 'a call with an Idempotency-Key',
    description:
      'A call repeated an Idempotency-Key, or the outcome of a call with one is unknown. Level 30 if the repetition got the first response; `msg` says what happened.',
    inRequest: true,
    required: {
      outcome: oneOf(
        'What became of the call',
        'replayed',
        'in_progress',
        'unknown',
        'repeated_unknown',
        'repeated_not_kept',
        'key_reused',
        'too_many',
        'record_lost',
      ),
      method: METHOD,
      route: ROUTE,
      session: SESSION,
      client: CLIENT,
    },
    optional: ON_ACCOUNT,
  },
  browser_left: {
    level: 'warn',
    message: 'the browser left before the response',
    description:
      'A call that changes something lost its browser before the response, so its user may not know the outcome.',
    inRequest: true,
    required: {
      method: METHOD,
      route: ROUTE,
      session: SESSION_IF_ANY,
      client: CLIENT,
      sent: oneOf('How much of the call was sent, so whether it may have been executed', 'nothing', 'part', 'whole'),
      status: count("The status of upstream's response; 0 if there was none yet", 999),
    },
    optional: { ...ON_ACCOUNT, cause: CAUSE },
  },
} as const satisfies Readonly<Record<string, AuditRule>>
