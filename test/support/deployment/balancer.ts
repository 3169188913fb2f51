import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A running balancer, and how often it chose each instance. */
export interface Balancer {
  readonly url: string
  readonly chosen: readonly number[]
}

/**
 * A load balancer without stickiness: every request, and every WebSocket, goes to the next instance in turn.
 * @param port where it listens
 * @param ports of the instances
 */
export async function testBalancer(t: Test, port: number, ports: readonly number[]): Promise<Balancer> {
  const chosen = ports.map(() => 0)
  let turn = 0
  const next = (): number => {
    const index = turn++ % ports.length
    chosen[index] = (chosen[index] ?? 0) + 1
    return ports[index] ?? 0
  }
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    const { method, url: path, headers } = request
    const onward = httpRequest({ host: '127.0.0.1', port: next(), method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  server.on('upgrade', (request: IncomingMessage, browser: Socket, head: Buffer) => {
    const instance = connect(next(), '127.0.0.1')
    const lines = [`${request.method} ${request.url} HTTP/1.1`]
    for (let at = 0; at < request.rawHeaders.length; at += 2) {
      lines.push(`${request.rawHeaders[at]}: ${request.rawHeaders[at + 1]}`)
    }
    instance.write(`${lines.join('\r\n')}\r\n\r\n`)
    instance.write(head)
    browser.pipe(instance).pipe(browser)
    for (const socket of [browser, instance]) {
      sockets.add(socket)
      socket
        .on('error', () => undefined)
        .on('close', () => {
          browser.destroy()
          instance.destroy()
          sockets.delete(socket)
        })
    }
  })
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://localhost:${port}`, chosen }
}
