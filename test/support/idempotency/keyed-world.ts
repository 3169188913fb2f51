import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { apiWorld, sendTo, type Answer, type ApiWorld, type CallInit } from '../upstream/api-world.ts'
import { gone } from '../upstream/raw-upstream.ts'
import { within } from '../time/until.ts'
import { testServer, type TestServer } from '../server/world.ts'

/** A path of the API that takes a key. */
export const TRANSFER = '/api/payment-agents/v1/transfer'

/** Two instances on one Redis, their upstream, and a browser that is logged in. */
export interface KeyedWorld extends ApiWorld {
  readonly other: TestServer
  /** An instance on the same Redis with other settings. */
  readonly instance: (settings: Record<string, string>) => Promise<TestServer>
  /** A POST with a key, and a different body for every text. */
  readonly post: (
    key: string,
    init?: CallInit & { readonly path?: string; readonly at?: TestServer | undefined },
  ) => Promise<Answer>
  /** Makes a call whose browser leaves once it has arrived upstream. @returns upstream's connection */
  readonly abandon: (key: string, at?: TestServer) => Promise<Socket>
}

/** Starts one that ends with the test. */
export async function keyedWorld(t: Test, settings: Record<string, string> = {}): Promise<KeyedWorld> {
  const api = await apiWorld(t, { settings, redis: true, provider: { refreshTokens: true } })
  const { world, cookie, upstream } = api
  const instance = async (more: Record<string, string>): Promise<TestServer> =>
    testServer(t, { ...world.settings, ...more, PORT: String(await freePort()) })
  return {
    ...api,
    other: await instance({}),
    instance,
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
    post: (key, { path = TRANSFER, at = world.server, body = '{"amount":1}', headers } = {}) =>
      sendTo(at.port, 'POST', path, { body, headers: { cookie, 'x-csrf': '1', 'idempotency-key': key, ...headers } }),
  }
}

/** The code of a problem. */
export const codeOf = ({ json }: Answer): unknown => json['code']
