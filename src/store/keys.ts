import { createHash, createHmac } from 'node:crypto'

const PREFIX = 'bff:1:'

/** 96 bits: enough to tell users apart. */
const NAME_LENGTH = 16

const SESSIONS = `${PREFIX}session:`

/** The prefix and the length of session keys. No other key has both. */
export const SESSION_KEYS = { prefix: SESSIONS, length: SESSIONS.length + sha256('').length } as const

/** The channel on which every instance announces the sessions that it ends. */
export const ENDED_CHANNEL = `${PREFIX}ended`

/** Key of a session. The id is the browser's secret, so the store holds only its hash. */
export function sessionKey(sessionId: string): string {
  return SESSIONS + sha256(sessionId)
}

/** Key of a login transaction. It takes both the state and the secret of the cookie to compute it. */
export function loginKey(state: string, secret: string): string {
  return `${PREFIX}login:${sha256(`${state}.${secret}`)}`
}

/** What there may be beside a session. */
type BesideSession =
  /** Why it is gone. */
  | 'tombstone'
  /** What is left of it once it has ended. */
  | 'left'
  /** Whose it was, if all sessions of its subject were to end. */
  | 'subject'
  /** What is known of the refusals of its refreshes. */
  | 'refusal'
  /** The mark that its token was renewed because upstream refused the one before. */
  | 'renewed'
  /** The permits for its trading sockets. */
  | 'relays'
  /** Its calls in the current minute. */
  | 'calls'

/** Key of what is beside a session. The braces put it into the session's own slot of a Cluster. */
export function besideKey(key: string, what: BesideSession): string {
  return `{${key}}:${what}`
}

/** What there may be of a session, or of the index of a subject's sessions, in a slot of its own. */
type PartOf =
  /** The lock for refreshing the tokens of a session. */
  | 'refresh'
  /** The marker that the expiry of a session has been recorded. */
  | 'lapsed'
  /** The counter of a session's calls with an Idempotency-Key. */
  | 'keys'
  /** The counters of how often a subject has asked for its sessions, and has ended one elsewhere, in a minute. */
  | 'listings'
  | 'ends'
  /** The counter of sessions that a subject has just ended elsewhere. */
  | 'ended'

/** Key of what belongs to a session or an index, which may be in another slot of a Cluster. */
export function partKey(key: string, what: PartOf): string {
  return `${key}:${what}`
}

/** Key of what all instances know of the provider's answers to refreshes. */
export const REFRESHES_KEY = `${PREFIX}refreshes`

/** For how long what has ended is left, for whoever has not heard of the end. */
export const LEFT_MS = 60_000

/** Key of the index of a subject's sessions. Without the secret it does not reveal the subject, even if names can be guessed. */
export function subjectKey(subject: string, secret: string): string {
  return `${PREFIX}subject:${createHmac('sha256', secret).update(`sessions of ${subject}`).digest('base64url')}`
}

/** Key of the index of the sessions here that belong to a session at the provider, which has a name of its own there. */
export function providerSessionKey(name: string, secret: string): string {
  return `${PREFIX}provider-session:${createHmac('sha256', secret).update(`sessions of sid ${name}`).digest('base64url')}`
}

/** Key of the index of the addresses that sent valid logouts of the provider. */
export const LOGOUT_SENDERS_KEY = `${PREFIX}logout-senders`

/** Key of the counter of logins started from a client's network. */
export function startsKey(network: string): string {
  return `${PREFIX}starts:${network}`
}

/** Key of a response that all instances share, by its path upstream. */
export function sharedResponseKey(path: string): string {
  return `${PREFIX}response:${path}`
}

/** What instances with the same upstream budget share. */
type OfBudget =
  /** The ledger. */
  | 'budget'
  /** The suspicions that upstream's refusals raise, and the channel on which instances tell each other of them. */
  | 'refusals'
  | 'budget-news'
  /** The queue of instances that drain. */
  | 'returns'

/** Key, or channel, of what instances share whose upstream budget has the same name. */
export function budgetKey(what: OfBudget, name: string): string {
  return `${PREFIX}${what}:${name}`
}

/**
 * The name of a user, or of an address, whose call upstream has refused. Without the secret it does not reveal the user. While a
 * new first secret is rolled out, instances with the old one do not know the names of the others.
 */
export function refusedName(user: string, secret: string): string {
  return createHmac('sha256', secret).update(`refused ${user}`).digest('base64url').slice(0, NAME_LENGTH)
}

/** Key of what operators have set (docs/operating/controls.md). */
export const CONTROLS_KEY = `${PREFIX}controls`

/** Key of the index of the instances that obey it. */
export const CONTROLLED_KEY = `${PREFIX}controlled`

/** Key of the record of a call with an Idempotency-Key. It takes the session's id to compute it. */
export function idempotencyKey(sessionId: string, key: string): string {
  return `${PREFIX}idempotency:${sha256(`${sessionId}.${key}`)}`
}

/** Key of the random value that keys the fingerprints of secrets. */
export const FINGERPRINT_KEY = `${PREFIX}fingerprint-key`

/** Key that the check of the settings writes and removes. */
export function probeKey(id: string): string {
  return `${PREFIX}probe:${id}`
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
