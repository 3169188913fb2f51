import { retryAfterMs } from '../http/retry-after.ts'

const MAX_RESPONSE_BYTES = 256 * 1024
const MAX_LIFETIME_SECONDS = 30 * 86_400

/** The provider's response is not that of a working token endpoint. The message quotes nothing of the response. */
export class UnusableResponse extends Error {
  /** What is wrong with the response, without any of its content. */
  readonly why: string
  /** Set on a 429: how long the endpoint asks to be left alone (ms), 0 if it does not say. */
  readonly busyForMs: number | undefined

  constructor(why: string, busyForMs?: number) {
    super(`unusable token endpoint response: ${why}`)
    this.name = 'UnusableResponse'
    this.why = why
    this.busyForMs = busyForMs
  }
}

type TokenResponse = Pick<Response, 'status' | 'body' | 'headers'>

/**
 * Reads a token endpoint's response (docs/upstream.md, Token endpoint), bounded in size, and normalizes it for
 * openid-client: only the members that the server uses, with a lifetime that is a number or missing.
 * @throws UnusableResponse on a 5xx, a 429, a redirect, a body that is too large, and one that is not a JSON object
 */
export async function readTokenResponse(response: TokenResponse): Promise<Response> {
  const { status, headers } = response
  const text = await boundedText(response)
  if (status === 429) {
    throw new UnusableResponse(`status ${status}`, retryAfterMs(headers.get('retry-after')) ?? 0)
  }
  if (status >= 500 || (status >= 300 && status < 400)) throw new UnusableResponse(`status ${status}`)
  const body = parsed(text)
  // A 401 always concerns the client (RFC 6749 §5.2), even if its body and its challenge do not say so.
  if (status === 401) return refusal(status, body?.['error'] ?? 'invalid_client')
  if (body === undefined) throw new UnusableResponse(`status ${status}, not a JSON object`)
  if (status >= 400) return refusal(status, body['error'])
  const { access_token, token_type, scope, expires_in, refresh_token } = body
  return Response.json(
    {
      access_token,
      token_type,
      expires_in: lifetime(expires_in),
      refresh_token: refresh_token ?? undefined,
      scope: scope ?? undefined,
    },
    { status },
  )
}

function refusal(status: number, error: unknown): Response {
  return Response.json({ error }, { status })
}

/** A usable lifetime in seconds; some providers send the number as a string. */
function lifetime(value: unknown): number | undefined {
  const isNumeric = typeof value === 'number' || (typeof value === 'string' && value.trim() !== '')
  const seconds = isNumeric ? Number(value) : 0
  return seconds > 0 && seconds <= MAX_LIFETIME_SECONDS ? seconds : undefined
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return value instanceof Object && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    // The error is dropped because it quotes the text, which may hold a token.
    return undefined
  }
}

async function boundedText({ body }: TokenResponse): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop early cancels the body.
  for await (const chunk of body ?? []) {
    size += chunk.byteLength
    if (size > MAX_RESPONSE_BYTES) throw new UnusableResponse('too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
