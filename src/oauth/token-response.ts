const MAX_RESPONSE_BYTES = 256 * 1024
const ABSURD_LIFETIME_SECONDS = 30 * 86_400

/** What came back is no answer of a token endpoint. The message tells why, and nothing of what was in it. */
export class UnusableResponse extends Error {
  /** What is wrong with it, without anything of its content. */
  readonly why: string
  /** The endpoint has too much to do, and has said so; 0 when it has not said for how long. */
  readonly busyForMs: number | undefined

  constructor(why: string, busyForMs?: number) {
    super(`the token endpoint's answer is of no use: ${why}`)
    this.name = 'UnusableResponse'
    this.why = why
    this.busyForMs = busyForMs
  }
}

type Answer = Pick<Response, 'status' | 'body' | 'headers'>

/**
 * Reads what a token endpoint answered (docs/upstream.md, Token endpoint), to its end and no further than it may be long,
 * and gives back what is worth knowing of it in a form that leaves nothing to guess.
 * @throws UnusableResponse on a 5xx, a 429, a redirect, and what is not JSON
 */
export async function readTokenResponse(answer: Answer): Promise<Response> {
  const { status } = answer
  const text = await boundedText(answer)
  if (status === 429) throw new UnusableResponse(`status ${status}`, retryAfterMs(answer.headers))
  if (status >= 500 || (status >= 300 && status < 400)) throw new UnusableResponse(`status ${status}`)
  const body = parsed(text)
  // A 401 is about the client (RFC 6749 §5.2), whatever its body and its challenge say or leave out.
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

/** What Retry-After says, in seconds or as a date (RFC 9110 §10.2.3); 0 when it says nothing usable. */
function retryAfterMs(headers: Answer['headers']): number {
  const text = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return ms > 0 ? ms : 0
}

function refusal(status: number, error: unknown): Response {
  return Response.json({ error }, { status })
}

/** Seconds, when it is a usable lifetime: a number, or one in quotes. */
function lifetime(value: unknown): number | undefined {
  const isNumeric = typeof value === 'number' || (typeof value === 'string' && value.trim() !== '')
  const seconds = isNumeric ? Number(value) : 0
  return seconds > 0 && seconds <= ABSURD_LIFETIME_SECONDS ? seconds : undefined
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return value instanceof Object && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    // The error quotes the text, which may hold a token.
    return undefined
  }
}

async function boundedText({ body }: Answer): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop cancels the rest.
  for await (const chunk of body ?? []) {
    size += chunk.byteLength
    if (size > MAX_RESPONSE_BYTES) throw new UnusableResponse('too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
