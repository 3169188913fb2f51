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

const FLOW = oneOf('What the user had started', 'login', 'signup')
/** For a command to end several sessions. Where it has failed on the way, the number of ended sessions is not known yet. */
const INCOMPLETE = oneOf('A failure on the way: some sessions may be left. Absent if there was none', 'incomplete')
const ERR = { description: 'A fault of this server, with its stack', $ref: '#/$defs/error' } as const
const OF_USER = { subject: SUBJECT } as const
const UNKNOWN_COUNT = 'absent if `incomplete`, where the lines session_ended with the same reqId say it'

/** How logins and sessions begin, go on and end, and which operators looked at them. */
export const SESSION_EVENTS = {
  login: {
    level: 'info',
    message: 'logged in',
    description: 'A login or a sign-up has finished, and its session begins.',
    inRequest: true,
    required: { flow: FLOW, session: SESSION, client: CLIENT },
    optional: OF_USER,
  },
  login_failed: {
    level: 'warn',
    message: 'login failed',
    description: 'A login came back from the provider and failed. Level 50 if only the operator can correct it.',
    inRequest: true,
    required: {
      error: oneOf(
        'The auth_error that the page gets',
        'access_denied',
        'state_mismatch',
        'invalid_grant',
        'invalid_client',
        'provider_unavailable',
        'try_later',
        'login_failed',
      ),
      client: CLIENT,
    },
    optional: {
      flow: FLOW,
      reason: oneOf(
        'The session was ended while it was being made: by a logout everywhere, the operator or a newer login at the limit',
        'ended',
      ),
      description: {
        description: "The provider's error_description, without the code, the state and the verifier",
        type: 'string',
        maxLength: 500,
      },
      cause: CAUSE,
      err: ERR,
      ...BOUNDED,
    },
  },
  login_not_started: {
    level: 'warn',
    message: 'a login could not be started',
    description: 'A login was refused before the browser went to the provider.',
    inRequest: true,
    required: {
      flow: FLOW,
      reason: oneOf('The limit of the address, the session store, or the provider', 'limit', 'store', 'provider'),
      client: CLIENT,
    },
    optional: { error: text('The auth_error that the page gets', '^[a-z_]{1,32}$'), cause: CAUSE, ...BOUNDED },
  },
  token_refreshed: {
    level: 'info',
    message: 'token refreshed',
    description: 'The provider has renewed the access token of a session.',
    inRequest: false,
    required: { session: SESSION },
    optional: OF_USER,
  },
  refresh_refused: {
    level: 'warn',
    message: 'the provider refused to renew the token of a session',
    description:
      'The provider has refused to renew the token of a session, with invalid_grant or with another error that ends it (docs/reference.md). The session ends, unless another instance has renewed the token meanwhile.',
    inRequest: false,
    required: { session: SESSION },
    optional: { ...OF_USER, cause: CAUSE },
  },
  revocation_failed: {
    level: 'warn',
    message: 'a token could not be revoked',
    description:
      'The provider has not confirmed that a token of an ended session is revoked. It may be good until it expires.',
    inRequest: false,
    required: { token: oneOf('Which of the two', 'access_token', 'refresh_token') },
    optional: { ...OF_USER, session: SESSION, status: count('The status of the response', 999), cause: CAUSE },
  },
  session_ended: {
    level: 'info',
    message: 'session ended',
    description: 'A session has ended. Without a request if a limit or the provider ended it, or if Redis has lost it.',
    inRequest: false,
    required: {
      reason: oneOf(
        'Why: the user, a newer login, upstream or the provider, the operator, or one of its limits; gone: Redis has lost it',
        'logout',
        'replaced',
        'refused',
        'revoked',
        'expired',
        'idle',
        'gone',
      ),
      session: SESSION,
    },
    optional: { ...OF_USER, reqId: REQUEST, client: CLIENT },
  },
  logout_everywhere: {
    level: 'info',
    message: 'logged out everywhere',
    description:
      'A user has ended all of their other sessions, and the one in use ends next; or has tried to. Each that has ended has a line session_ended.',
    inRequest: true,
    required: { session: SESSION_IF_ANY, client: CLIENT },
    optional: {
      ...OF_USER,
      ended: count(`How many other sessions there were; ${UNKNOWN_COUNT}`),
      outcome: INCOMPLETE,
      cause: CAUSE,
    },
  },
  provider_logout: {
    level: 'info',
    message: 'logged out by the provider',
    description:
      'The provider has logged out a user, or one of their sessions there. Each session here that has ended has a line session_ended.',
    inRequest: true,
    required: {
      client: CLIENT,
      ended: count('How many sessions have ended; 0 for one that was repeated, for instance'),
    },
    optional: OF_USER,
  },
  provider_logout_refused: {
    level: 'warn',
    message: 'a logout of the provider was refused',
    description: 'Somebody, perhaps the provider, has sent a logout token that is not valid.',
    inRequest: true,
    required: {
      client: CLIENT,
      fault: oneOf(
        'The first check that failed',
        'form',
        'shape',
        'algorithm',
        'issuer',
        'audience',
        'type',
        'age',
        'expired',
        'events',
        'subject',
        'nonce',
        'signature',
      ),
    },
    optional: {
      age: count('How many seconds ago it was issued, by the clock of this server, where its age is the fault'),
      ahead: count('How many seconds ahead of the clock of this server it was issued, where its age is the fault'),
      ...BOUNDED,
    },
  },
  sessions_listed: {
    level: 'info',
    message: 'sessions listed',
    description: 'An operator has looked up the sessions of a user.',
    inRequest: false,
    required: { client: CLIENT, subject: SUBJECT, sessions: count('How many there were') },
    optional: { reqId: REQUEST },
  },
  sessions_revoked: {
    level: 'warn',
    message: 'sessions revoked',
    description:
      'An operator has ended sessions of a user, or has tried to. Each that has ended has a line session_ended.',
    inRequest: false,
    required: { client: CLIENT, subject: SUBJECT },
    optional: {
      reqId: REQUEST,
      session: tagOf('The one that was asked for; absent if it was all of them'),
      ended: count(`How many have ended; ${UNKNOWN_COUNT}`),
      outcome: INCOMPLETE,
      cause: CAUSE,
    },
  },
  controls_changed: {
    level: 'warn',
    message: 'an operator has changed the controls',
    description: 'An operator has paused orders, told users a notice, or ended one of these.',
    inRequest: false,
    required: {
      control: oneOf('What it concerns', 'orders', 'notice'),
      action: oneOf('What was done', 'set', 'lifted'),
      controlsVersion: count('The version of the controls since then'),
      client: CLIENT,
    },
    optional: {
      reqId: REQUEST,
      subject: { ...SUBJECT, description: 'The user whose orders it concerns, as in other lines; absent if it is all' },
      text: { description: 'What users are told', type: 'string', maxLength: 1000 },
      until: count('When it ends by itself, in seconds since 1970'),
      closing: oneOf('Whether users may close what they have bought', 'allowed', 'paused'),
      outcome: oneOf('The store was away: other instances learn of it later. Absent if it was there', 'here_only'),
    },
  },
  ops_refused: {
    level: 'warn',
    message: 'an operator call was refused',
    description: 'A caller asked the ops listener for sessions or controls without the right OPS_TOKEN.',
    inRequest: false,
    required: { client: CLIENT },
    optional: { reqId: REQUEST, ...BOUNDED },
  },
} as const satisfies Readonly<Record<string, AuditRule>>
