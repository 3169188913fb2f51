import { decoded } from './key-values.ts'

/** A parameter of AUTHORIZATION_PARAMS. */
type AuthorizationParam = readonly [name: string, value: string]

/**
 * Parameters that this server sets itself, that would replace them all (RFC 9101), that would move the response out of
 * the query, or that are credentials. They are refused in any case, since some providers ignore the case of names.
 */
const RESERVED: ReadonlySet<string> = new Set([
  'response_type',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
  'app_id',
  'sidc',
  'utm_campaign',
  'utm_medium',
  'utm_source',
  'request',
  'request_uri',
  'response_mode',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
])
/** Without dots, spaces and brackets, which some frameworks turn into other names: `client.id` into `client_id`. */
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
const MAX_LENGTH = 2048
/** The only parameter that may be repeated (RFC 8707 §2). */
const REPEATABLE = 'resource'
/** A login must not be turned into a sign-up. */
const SIGN_UP = /(^| )registration( |$)/i

/** Parses AUTHORIZATION_PARAMS, a query string. Returns undefined if it may not be added to an authorization request. */
export function parseAuthorizationParams(value: string): readonly AuthorizationParam[] | undefined {
  if (value.length > MAX_LENGTH || !/^[\x21\x22\x24-\x7e]+$/.test(value) || decoded(value) === undefined)
    return undefined
  const params = [...new URLSearchParams(value)]
  return params.length > 0 && params.every(isAllowed) ? params : undefined
}

/**
 * Whether an endpoint may have this query, to which every request adds its own parameters (RFC 6749 §3.1, §3.2). `prompt`
 * would also be added to sign-ups, which have their own.
 */
export function isEndpointQuery(query: string): boolean {
  const params = parseAuthorizationParams(query)
  return params !== undefined && !params.some(([name]) => name === 'prompt')
}

/** Whether a parameter is also in the query of the authorization endpoint, so that requests would have it twice. */
export function isInQuery(authorizationUrl: string, params: readonly AuthorizationParam[]): boolean {
  const inQuery = URL.parse(authorizationUrl)?.searchParams.keys() ?? []
  const names = new Set([...inQuery].map((name) => name.toLowerCase()))
  return params.some(([name]) => name !== REPEATABLE && names.has(name.toLowerCase()))
}

function isAllowed([name, value]: AuthorizationParam, index: number, all: readonly AuthorizationParam[]): boolean {
  const lower = name.toLowerCase()
  if (!NAME.test(name) || RESERVED.has(lower) || /\p{Cc}/u.test(value)) return false
  // In any other case, `prompt` would also be added to sign-ups.
  if (lower === 'prompt' && (name !== lower || SIGN_UP.test(value))) return false
  return name === REPEATABLE || all.findIndex(([other]) => other.toLowerCase() === lower) === index
}
