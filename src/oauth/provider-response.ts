import { parsedObject } from '../http/parsed-object.ts'
import { retryAfterMs } from '../http/retry-after.ts'

const MAX_RESPONSE_BYTES = 256 * 1024
const MAX_LIFETIME_SECONDS = 30 * 86_400
const MAX_DESCRIPTION = 300
/** How long a client that got a 429 is to wait: as long as the 429 says, within limits. */
const BUSY_MS = { least: 1000, most: 60_000, unsaid: 10_000 }
/** Characters that fit into a header. A token with any other could never be used. */
const TOKEN = /^[\x21-\x7e]+$/

/** The provider's response is not that of a working endpoint. The message quotes nothing of the response. */
export class UnusableResponse extends Error {
  /** The fault of the response, without any of its content. */
  readonly why: string
  readonly status: number
  /** Set on a 429: how long the endpoint asks to be left alone (ms), 1 to 60 s; 10 s if it does not say. */
  readonly busyForMs: number | undefined

  constructor(why: string, status: number, busyForMs?: number) {
    super(`unusable response of the provider: ${why}`)
    this.name = 'UnusableResponse'
    this.why = why
    this.status = status
    this.busyForMs = busyForMs
  }
}

/** The part of a fetched response that is read, and the secrets of its request, none of which may reach the log. */
export type RawResponse = Pick<Response, 'status' | 'body' | 'headers'> & { readonly secrets?: readonly string[] }

/** The body is undefined if it is not a JSON object. */
type ProviderResponse =
  | { readonly is: 'success'; readonly status: number; readonly body: Record<string, unknown> | undefined }
  /** With the `error` and the `error_description` of the body, and nothing else of it (RFC 6749 §5.2). */
  | { readonly is: 'refusal'; readonly refusal: Response }

/**
 * Reads a response to a request that this client authenticates itself for, bounded in size.
 * @throws UnusableResponse on a 5xx, a 429, a redirect, a body that is too large, and a 4xx that is not a JSON object
 */
export async function readProviderResponse(response: RawResponse): Promise<ProviderResponse> {
  const { status, headers, secrets = [] } = response
  const text = await boundedText(response)
  if (status === 429) {
    const askedMs = retryAfterMs(headers.get('retry-after')) ?? BUSY_MS.unsaid
    throw new UnusableResponse(`status ${status}`, status, Math.min(Math.max(askedMs, BUSY_MS.least), BUSY_MS.most))
  }
  if (status >= 500 || (status >= 300 && status < 400)) throw new UnusableResponse(`status ${status}`, status)
  const body = parsedObject(text)
  if (status < 400) return { is: 'success', status, body }
  const said = body?.['error'] === undefined ? (dpopChallenge(headers) ?? body) : body
  // With a challenge a 401 concerns the client (RFC 6749 §5.2), even if neither says more. Without one it may come from a proxy.
  if (status === 401 && headers.has('www-authenticate'))
    return refusal(status, { ...said, error: said?.['error'] ?? 'invalid_client' }, secrets)
  if (said === undefined) throw new UnusableResponse(`status ${status}, not a JSON object`, status)
  return refusal(status, said, secrets)
}

/**
 * Reads a token endpoint's response (docs/upstream.md, Token endpoint) and normalizes it for openid-client: only the
 * members that the server uses, with a lifetime that is a number or missing.
 * @param idTokenName what an ID token is called then, if it is one of them; openid-client validates an `id_token`
 * @throws UnusableResponse as {@link readProviderResponse}, and on any body that is not a JSON object
 */
export async function readTokenResponse(response: RawResponse, idTokenName?: string): Promise<Response> {
  const read = await readProviderResponse(response)
  if (read.is === 'refusal') return read.refusal
  const { status, body } = read
  if (body === undefined) throw new UnusableResponse(`status ${status}, not a JSON object`, status)
  const { access_token, token_type, scope, expires_in, refresh_token, id_token, error } = body
  // Some providers refuse with a 200.
  if (typeof error === 'string' && error !== '' && !isUsable(access_token)) {
    return refusal(400, body, response.secrets ?? []).refusal
  }
  return Response.json(
    {
      access_token,
      token_type,
      expires_in: lifetime(expires_in),
      // Some providers print an empty one for none.
      refresh_token: refresh_token === null || refresh_token === '' ? undefined : refresh_token,
      scope: readScope(scope),
      ...(idTokenName !== undefined && { [idTokenName]: id_token === null || id_token === '' ? undefined : id_token }),
    },
    // To openid-client a 201, which some providers send, is a failure.
    { status: status === 201 ? 200 : status },
  )
}

/** Whether this can be sent as a token. */
export function isUsable(token: unknown): token is string {
  return typeof token === 'string' && TOKEN.test(token)
}

/** Reads a body as UTF-8, without a byte order mark, which a parser of JSON may ignore (RFC 8259 §8.1). @throws UnusableResponse if it has more than 256 KiB, whose rest is then not read */
export async function boundedText({ status, body }: RawResponse): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop early cancels the body.
  for await (const chunk of body ?? []) {
    size += chunk.byteLength
    if (size > MAX_RESPONSE_BYTES) throw new UnusableResponse('too large', status)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/^\uFEFF/, '')
}

function refusal(
  status: number,
  { error, error_description: description }: Record<string, unknown>,
  secrets: readonly string[],
): { is: 'refusal'; refusal: Response } {
  const readable = typeof description === 'string' ? withoutSecrets(description, secrets) : undefined
  return { is: 'refusal', refusal: Response.json({ error, error_description: readable }, { status }) }
}

/** The error of a challenge for DPoP (RFC 9449 §7.1), which some providers send without a body that says it. */
function dpopChallenge(headers: Headers): Record<string, string> | undefined {
  const [, parameters = ''] = /(?:^|,)\s*DPoP\s(.*)/is.exec(headers.get('www-authenticate') ?? '') ?? []
  const read = (name: string): string | undefined => new RegExp(`\\b${name}="([^"]*)"`, 'i').exec(parameters)?.[1]
  const [error, description] = [read('error'), read('error_description')]
  return error === undefined ? undefined : { error, ...(description && { error_description: description }) }
}

/** A text of the provider for the log: of one line, of bounded length, and with the secrets that it quotes blacked out. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  const shown = secrets.reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
  return shown.replaceAll(/[\p{Cc}\s]+/gu, ' ').slice(0, MAX_DESCRIPTION)
}

/** A usable lifetime in seconds; some providers send the number as a string. */
function lifetime(value: unknown): number | undefined {
  const isNumeric = typeof value === 'number' || (typeof value === 'string' && value.trim() !== '')
  const seconds = isNumeric ? Number(value) : 0
  return seconds > 0 && seconds <= MAX_LIFETIME_SECONDS ? seconds : undefined
}

/** The scope as a text; some providers send a list. Undefined if there is none (RFC 6749 §5.1: the requested one). */
function readScope(value: unknown): unknown {
  const isList = Array.isArray(value) && value.every((item) => typeof item === 'string')
  const scope: unknown = isList ? value.join(' ') : value
  return scope === null || scope === '' ? undefined : scope
}
