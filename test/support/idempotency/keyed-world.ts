import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'
import type { TestServer } from '../server/test-server.ts'
import { within } from '../time/until.ts'
import { gone } from '../upstream/raw-upstream.ts'
import { TRANSFER, type Answer } from '../user.ts'
import { startWorld, type World, API } from '../world.ts'

/** Two instances on one Redis, the second of which writes compact records, their upstream, and a user whose orders have keys. */
interface KeyedWorld extends World<'raw'> {
  readonly other: TestServer
  /** Makes a call whose browser leaves once it has arrived upstream. @returns upstream's connection */
  readonly abandon: (key: string, at?: TestServer) => Promise<Socket>
}

/** Starts one that ends with the test. */
export async function keyedWorld(t: Test, settings: Record<string, string> = {}): Promise<KeyedWorld> {
  const provider = { refreshTokens: true }
  const world = await startWorld(t, { provider, ...API, redis: true, settings })
  const { cookie, upstream } = world
  return {
    ...world,
    other: await world.instance({ IDEMPOTENCY_COMPACT: 'true' }),
    async abandon(key, at = world.server) {
      const arrived = new Promise<Socket>((resolve) => (upstream.answer = (_request, socket) => resolve(socket)))
      const browser = connect(at.port, '127.0.0.1')
      const body = '{"amount":1}'
      browser.write(
        `POST ${TRANSFER} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n` +
          `Idempotency-Key: ${key}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
      const upstreamSocket = await within(arrived, 'the call arrives upstream')
      browser.destroy()
      await gone(browser)
      return upstreamSocket
    },
  }
}

/** The code of a problem. */
export const codeOf = ({ json }: Answer): unknown => json['code']
