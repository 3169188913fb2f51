import { connect, createServer } from 'node:net'

/**
 * Copies bytes from one socket to the other, which is the lower bound of any relay in Node.js.
 * `PORT=… WS_URL=… node pipe-relay.ts`
 */

const environment = process.env
const { port } = new URL(environment['WS_URL'] ?? '')

createServer((browser) => {
  const upstream = connect(Number(port), '127.0.0.1')
  for (const socket of [browser, upstream]) {
    socket.setNoDelay()
    socket.on('error', () => undefined)
  }
  browser.pipe(upstream)
  upstream.pipe(browser)
  browser.on('close', () => upstream.destroy())
  upstream.on('close', () => browser.destroy())
}).listen({ port: Number(environment['PORT']), host: '127.0.0.1', backlog: 4096 })
