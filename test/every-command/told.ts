/**
 * What may be told of a failure (docs/reference.md, REST): the first row that fits decides.
 * Where none fits, nobody notices the failure.
 */
const TOLD: readonly (readonly [when: RegExp, told: RegExp])[] = [
  [/^GET .auth.*: tokens gets a 429/, /^try_later$/],
  [/^GET .auth.*: tokens gets an invalid_grant/, /^invalid_grant$/],
  [/^GET .auth.*: (tokens|keys)/, /^provider_unavailable$/],
  [/^POST .auth.backchannel.*: keys/, /^503 .*provider_unavailable/],
  [/: tokens gets an invalid_grant/, /^401 session_expired$/],
  [/: tokens (is lost|gets a (429|500))/, /^503 provider_unavailable$/],
  // The provider has renewed the tokens all the same, and takes the next try for a theft.
  [/: tokens/, /^(503 provider_unavailable|401 session_expired)$/],
  [/^GET .ws.*: \w+ gets a 429 with/, /^4429 rate_limited;retry_after=1$/],
  [/^GET .ws.*: \w+ gets a 429/, /^4429 rate_limited$/],
  [/^GET .ws.*: \w+ gets a late/, /^1013 upstream_timeout$/],
  [/^GET .ws.*: OTP (is lost|gets no)/, /^1013 upstream_lost$/],
  [/^GET .ws.*: OTP gets a 401 twice/, /^4401 session_expired$/],
  [/^GET .ws.*: OTP gets a 401/, /^$/],
  [/^GET .ws.*: socket (is lost|gets no|gets half)/, /^1013 upstream_unreachable$/],
  [/^GET .ws.*: (OTP|socket)/, /^1013 upstream_error$/],
  [/: REST gets a 429/, /^429$/],
  [/^GET .*: REST gets a 401/, /^401 session_expired$/],
  [/^GET .*: REST gets a 500/, /^500 upstream_error$/],
  [/^GET .*: REST gets a late/, /^504 upstream_timeout$/],
  [/^GET .*: REST gets half/, /^0 broken off$/],
  [/^POST .*: REST gets a 401/, /^(503 credential_renewed|401 session_expired)$/],
  [/^POST .*: REST gets a 500/, /^500 upstream_error unknown$/],
  [/^POST .*: REST gets a late/, /^504 upstream_timeout unknown$/],
  [/^POST .api: REST gets half/, /^broken off$/],
  [/^POST .*: REST (is lost|gets no|gets half)/, /^502 upstream_lost unknown$/],
]

/**
 * Whether this may be told.
 * @param when the journey, the call and the fault
 * @param told a status, a code and an outcome; what a socket is closed with; the error of a login
 */
export function mayBeTold(when: string, told: string): boolean {
  // With or without a fault.
  if (when.includes('a token that upstream refuses') && told === '503 credential_renewed')
    return when.startsWith('POST')
  return TOLD.find(([pattern]) => pattern.test(when))?.[1].test(told) ?? false
}
