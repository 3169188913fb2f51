/** A request of HTTP/1.1, as far as faults choose by it. */
export interface SeenRequest {
  readonly method: string
  readonly path: string
  /** The whole head, in lower case but for values. */
  readonly head: string
  readonly body: string
}

/** What bytes from the start of a request are: a whole one, a part of one, or no HTTP, as the messages of a socket. */
export function requestIn(bytes: Buffer): SeenRequest | 'incomplete' | undefined {
  const text = bytes.toString('latin1')
  const [, method = '', path = ''] = /^([A-Z]{3,7}) (\S+) HTTP\/1\.1\r\n/.exec(text) ?? []
  if (method === '') return undefined
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return 'incomplete'
  const head = text.slice(0, end)
  const body = text.slice(end + 4)
  const length = Number(headerOf(head, 'content-length') ?? 0)
  const isChunked = headerOf(head, 'transfer-encoding') === 'chunked'
  if (isChunked ? !body.endsWith('0\r\n\r\n') : body.length < length) return 'incomplete'
  return { method, path, head, body }
}

/** The value of a header. */
export function headerOf(head: string, name: string): string | undefined {
  return new RegExp(`^${name}: *(.*)$`, 'im').exec(head)?.[1]?.trim()
}

/** A response with a body of JSON. */
export function jsonResponse(status: number, body: object, headers: Readonly<Record<string, string>> = {}): string {
  const json = JSON.stringify(body)
  const own = { 'content-type': 'application/json', 'content-length': String(json.length), ...headers }
  const lines = Object.entries(own).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${status} By the nemesis`, ...lines, '', json].join('\r\n')
}

/** A whole 200 with other JSON in it. Anything else stays as it is. */
export function withJson(response: Buffer, edit: (json: Record<string, unknown>) => object): Buffer {
  const text = response.toString()
  const end = text.indexOf('\r\n\r\n')
  const head = text.slice(0, end)
  const body = text.slice(end + 4)
  if (!head.startsWith('HTTP/1.1 200') || Number(headerOf(head, 'content-length')) !== Buffer.byteLength(body))
    return response
  const json = JSON.stringify(edit(JSON.parse(body) as Record<string, unknown>))
  return Buffer.from(
    `${head.replace(/^content-length:.*$/im, `content-length: ${Buffer.byteLength(json)}`)}\r\n\r\n${json}`,
  )
}
