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

/** Key of the lock for refreshing the tokens of a session. */
export function refreshLockKey(key: string): string {
  return `${key}:refresh`
}

/** Key of the marker that the expiry of a session has been recorded. */
export function expiryMarkerKey(key: string): string {
  return `${key}:lapsed`
}

/** Key of the tombstone of a session. The braces put it into the session's own slot of a Cluster. */
export function tombstoneKey(key: string): string {
  return `{${key}}:tombstone`
}

/** Key of what is known of the refusals of a session's refreshes, in the session's own slot. */
export function refusalKey(key: string): string {
  return `{${key}}:refusal`
}

/** Key of the mark that a session's token was renewed because upstream refused the one before, in the session's own slot. */
export function renewalKey(key: string): string {
  return `{${key}}:renewed`
}

/** Key of what all instances know of the provider's answers to refreshes. */
export const REFRESHES_KEY = `${PREFIX}refreshes`

/** For how long what has ended is left, for whoever has not heard of the end. */
export const LEFT_MS = 60_000

/** Key of what is left of a session that has ended, in the session's own slot. */
export function leftKey(key: string): string {
  return `{${key}}:left`
}

/** Key of the permits for trading sockets of a session, in the session's own slot. */
export function permitsKey(key: string): string {
  return `{${key}}:relays`
}

/** Key of the calls of a session in the current minute, in the session's own slot. */
export function callsKey(key: string): string {
  return `{${key}}:calls`
}

/** Key of the index of a subject's sessions. Without the secret it does not reveal the subject, even if names can be guessed. */
export function subjectKey(subject: string, secret: string): string {
  return `${PREFIX}subject:${createHmac('sha256', secret).update(`sessions of ${subject}`).digest('base64url')}`
}

/** Key of the counter of how often a subject has asked for its sessions in a minute. @param index key of their index */
export function listingsKey(index: string): string {
  return `${index}:listings`
}

/** Key of the counter of how often a subject has ended a session elsewhere in a minute. @param index key of their index */
export function endsKey(index: string): string {
  return `${index}:ends`
}

/** Key of the counter of sessions that a subject has just ended elsewhere. @param index key of their index */
export function endedElsewhereKey(index: string): string {
  return `${index}:ended`
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

/** Key of the queue of instances that drain, by the name of their upstream budget. */
export function returnsKey(name: string): string {
  return `${PREFIX}returns:${name}`
}

/** Key of the ledger of an upstream budget. */
export function ledgerKey(name: string): string {
  return `${PREFIX}budget:${name}`
}

/** Key of the suspicions that upstream's refusals raise, by the name of the budget. */
export function refusalsKey(name: string): string {
  return `${PREFIX}refusals:${name}`
}

/** The channel on which instances with the same budget tell each other that upstream has refused a call. */
export function budgetChannel(name: string): string {
  return `${PREFIX}budget-news:${name}`
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

/** Key of the counter of a session's calls with an Idempotency-Key. */
export function idempotencyUsageKey(key: string): string {
  return `${key}:keys`
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
