import { readProviderResponse, UnusableResponse, type RawResponse } from './provider-response.ts'

const MAX_LIFETIME_SECONDS = 30 * 86_400

/**
 * Reads a token endpoint's response (docs/upstream.md, Token endpoint) and normalizes it for openid-client: only the
 * members that the server uses, with a lifetime that is a number or missing.
 * @throws UnusableResponse as {@link readProviderResponse}, and on any body that is not a JSON object
 */
export async function readTokenResponse(response: RawResponse): Promise<Response> {
  const read = await readProviderResponse(response)
  if (read.is === 'refusal') return read.refusal
  const { status, body } = read
  if (body === undefined) throw new UnusableResponse(`status ${status}, not a JSON object`, status)
  const { access_token, token_type, scope, expires_in, refresh_token } = body
  return Response.json(
    {
      access_token,
      token_type,
      expires_in: lifetime(expires_in),
      // Some providers print an empty one for none.
      refresh_token: refresh_token === null || refresh_token === '' ? undefined : refresh_token,
      scope: readScope(scope),
    },
    { status },
  )
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
