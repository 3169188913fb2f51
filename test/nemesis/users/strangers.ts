/** Runs in a thread of its own: strangers without a session, each of whom keeps a server as busy as one connection can. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { workerData } from 'node:worker_threads'
import type { StrangersData } from '../faults/strangers.ts'

const STRANGERS = 12
/** So long each waits before the next time. Without it they would need a processor of their own. */
const AGAIN_MS = 500
/** About as many bytes as a server reads at once. */
const AT_ONCE = 1000

const { port, host, way } = workerData as StrangersData
const head = (line: string, ...headers: string[]): string =>
  [`${line} HTTP/1.1`, `Host: ${host}`, ...headers, '', ''].join('\r\n')
/** A masked ping of one byte. */
const PING = Buffer.from([0x89, 0x81, 0, 0, 0, 0, 0x78])

/** Nobody has given out such a cookie. */
const madeUp = (): string =>
  `__Host-login-${randomBytes(6).toString('base64url')}=${randomBytes(48).toString('base64url')}`

/** What a connection begins with, and then what it goes on with. */
const [FIRST, NEXT]: readonly [string, string | Buffer] = {
  'requests together': twice(`${head('POST /nothing', 'Content-Length: 1')}x`.repeat(AT_ONCE)),
  'bodies in tiny chunks': [
    head('POST /auth/logout', 'X-CSRF: 1', 'Transfer-Encoding: chunked'),
    '1\r\nx\r\n'.repeat(2 * AT_ONCE),
  ] as const,
  'cookies of logins': twice(
    head(
      'GET /auth/callback?state=made-up&code=up',
      `Cookie: ${Array.from({ length: 10 }, madeUp).join('; ')}`,
      'Sec-Fetch-Dest: document',
    ).repeat(16),
  ),
  pings: [
    head(
      ...(['GET /ws/public', `Origin: http://${host}`, 'Connection: Upgrade', 'Upgrade: websocket'] as const),
      ...['Sec-WebSocket-Version: 13', `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`],
    ),
    Buffer.concat(Array.from({ length: 2 * AT_ONCE }, () => PING)),
  ] as const,
}[way]

function twice(text: string): readonly [string, string] {
  return [text, text]
}

async function act(): Promise<never> {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
      .on('error', () => undefined)
      .resume()
    await Promise.race([once(socket, 'connect'), once(socket, 'close')])
    for (let isFirst = true; !socket.destroyed; isFirst = false) {
      socket.write(isFirst ? FIRST : NEXT)
      await pause(AGAIN_MS)
    }
  }
}

for (let nth = 0; nth < STRANGERS; nth++) void act()
