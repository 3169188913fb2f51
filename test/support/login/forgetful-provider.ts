import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { createServer, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Test } from 'tap'
import { listen } from '../../../sandbox/listening.ts'
import { testCa, trust } from '../redis/tls.ts'

type Request = IncomingMessage | Http2ServerRequest
type Response = ServerResponse | Http2ServerResponse

/** One request, and the connection that it came on: 1 for the first one. */
interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly version: string
  readonly connection: number
}

/**
 * A provider that keeps each of its connections open, and responds to the first request on it alone: as if the network had
 * forgotten the connection then, without a word.
 */
export interface ForgetfulProvider {
  readonly url: string
  readonly requests: SeenRequest[]
  /** By path; what is not JSON text is a status without a body. */
  readonly responses: Record<string, string | number>
}

/**
 * Starts one that ends with the test.
 * @param isTls speaks HTTP/2 to whoever can, and else HTTP/1.1
 * @param allowHTTP1 false: or else nothing
 */
export async function forgetfulProvider(t: Test, isTls: boolean, allowHTTP1 = true): Promise<ForgetfulProvider> {
  const connections: unknown[] = []
  const answered = new Set<unknown>()
  const respond = (request: Request, response: Response): void => {
    const connection = 'stream' in request ? request.stream.session : request.socket
    if (!connections.includes(connection)) connections.push(connection)
    const { method = '', url: path = '', httpVersion: version } = request
    provider.requests.push({ method, path, version, connection: connections.indexOf(connection) + 1 })
    if (answered.has(connection)) return
    answered.add(connection)
    const content = provider.responses[path] ?? 404
    const isFound = typeof content === 'string'
    response.statusCode = isFound ? 200 : content
    if (isFound) response.setHeader('content-type', 'application/json')
    response.end(isFound ? content : '')
  }
  const server = isTls ? await secureServer(t, respond, allowHTTP1) : createServer(respond)
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => void open.add(socket.on('close', () => open.delete(socket))))
  const port = await listen(server, 0, '127.0.0.1')
  t.teardown(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  const provider: ForgetfulProvider = {
    url: `${isTls ? 'https' : 'http'}://localhost:${port}`,
    requests: [],
    responses: {},
  }
  return provider
}

async function secureServer(
  t: Test,
  respond: (request: Request, response: Response) => void,
  allowHTTP1: boolean,
): Promise<Server> {
  const ca = await testCa(t)
  await trust(t, ca)
  const pem = await readFile(ca.pemFile)
  return createSecureServer({ allowHTTP1, cert: pem, key: pem }, respond) as unknown as Server
}
