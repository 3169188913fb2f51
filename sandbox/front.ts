import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { connect } from 'node:net'
import { pipeline, type Duplex } from 'node:stream'
import type { Certificate } from './certificate.ts'

/** Every path of the server, and no path of the page such as /authors. */
const SERVER_PATHS = /^\/(?:(?:auth|api|ws|problems)\/|(?:client(?:\/[a-z]+)?\.js|(?:openapi|asyncapi)\.json)(?:$|\?))/
/** Where a phone finds the authority, to trust it. */
export const AUTHORITY_PATH = '/sandbox.crt'

export interface FrontOptions {
  readonly port: number
  /** The address to listen on. */
  readonly bind: string
  readonly certificate: Certificate
  /** The origin of the page behind it, which speaks plain HTTP. */
  readonly page: URL
  /** The origin of the server behind it. */
  readonly server: URL
}

/** Serves a page and the server as one origin over TLS, as a balancer does. */
export async function startFront({ port, bind, certificate, page, server }: FrontOptions): Promise<void> {
  const front = createServer(certificate)
  const onward = ({ url = '/', headers }: IncomingMessage): { target: URL; headers: OutgoingHttpHeaders } =>
    // A development server refuses hosts that it does not know.
    SERVER_PATHS.test(url) ? { target: server, headers } : { target: page, headers: { ...headers, host: page.host } }

  front.on('request', (request, response) => {
    if (request.url === AUTHORITY_PATH) {
      response.setHeader('content-type', 'application/x-x509-ca-cert').end(certificate.authority)
    } else pass(request, response, onward(request))
  })
  front.on('upgrade', (request, socket, head) => {
    const { target, headers } = onward(request)
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}\r\n`)
    const peer = connect(portOf(target), target.hostname)
    peer.write(`GET ${request.url ?? '/'} HTTP/1.1\r\n${lines.join('')}\r\n`)
    peer.write(head)
    join(socket, peer)
  })
  await once(front.listen(port, bind), 'listening')
}

function pass(
  request: IncomingMessage,
  response: ServerResponse,
  { target, headers }: { target: URL; headers: OutgoingHttpHeaders },
): void {
  const { method, url: path } = request
  const asked = httpRequest({ host: target.hostname, port: portOf(target), method, path, headers })
  asked.on('response', (answer) => {
    // It would concern every other program on this host, too.
    delete answer.headers['strict-transport-security']
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    pipeline(answer, response, () => undefined)
  })
  asked.on('error', () => {
    if (response.headersSent) response.destroy()
    else
      response.writeHead(502, { 'content-type': 'text/plain' }).end(`Nothing answers at ${target.origin}. Start it.\n`)
  })
  response.on('close', () => asked.destroy())
  request.pipe(asked)
}

/** A page may be at port 80, which its URL leaves out. */
function portOf({ port }: URL): number {
  return Number(port || 80)
}

/** Either side ends with the other. */
function join(one: Duplex, other: Duplex): void {
  pipeline(one, other, () => one.destroy())
  pipeline(other, one, () => other.destroy())
}
