import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { pino } from 'pino'
import { Pool, type Dispatcher } from 'undici'

/**
 * A minimal Node.js proxy for comparison: node:http in front, undici behind. It has no sessions, checks or routes. It sends
 * a fixed bearer token and logs one line per request unless LOG_LEVEL is silent. `PORT=… API_URL=… node rest-proxy.ts`
 */

const environment = process.env
const log = pino({ level: environment['LOG_LEVEL'] ?? 'info', base: null })
const pool = new Pool(environment['API_URL'] ?? '', { connections: 512 })
const PASSED = ['accept', 'accept-encoding', 'accept-language', 'content-length', 'content-type'] as const

const server = createServer((request, response) => {
  const startedAt = performance.now()
  const { method = 'GET', url: path = '/', headers } = request
  response.once('finish', () => {
    log.info({ method, path, status: response.statusCode, ms: performance.now() - startedAt }, 'request')
  })
  const body = method === 'GET' ? null : request
  pool.dispatch(
    {
      path: path.replace(/^\/api/, ''),
      method,
      headers: passed(headers),
      body,
    },
    new ResponseCopier(response),
  )
})
server.listen(Number(environment['PORT']), '127.0.0.1')

function passed(headers: IncomingHttpHeaders): string[] {
  const list = ['authorization', `Bearer ${'x'.repeat(43)}`]
  for (const name of PASSED) {
    const value = headers[name]
    if (value !== undefined) list.push(name, value)
  }
  return list
}

/** Streams upstream's response to the browser. */
class ResponseCopier implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse

  constructor(response: ServerResponse) {
    this.#response = response
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#response.writeHead(status, {
      'content-type': headers['content-type'],
      'content-length': headers['content-length'],
    })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#response.write(chunk)) return
    controller.pause()
    this.#response.once('drain', () => controller.resume())
  }

  onResponseEnd(): void {
    this.#response.end()
  }

  onResponseError(): void {
    if (this.#response.headersSent) this.#response.destroy()
    else this.#response.writeHead(502).end()
  }
}
