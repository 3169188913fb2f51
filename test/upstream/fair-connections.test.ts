import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'tap'
import { IDENTIFIED } from '../support/login/identity.ts'
import type { BrowserSocket } from '../support/browser/browser-socket.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'
import { sendTo, ACCOUNTS, TRADING } from '../support/user.ts'
import { startWorld, API } from '../support/world.ts'
/** Calls that a session may have in progress, of the 512 connections for reads, and of as many for orders. */
const MOST = 100

for (const method of ['GET', 'POST'] as const) {
  await test(`${method}: a session whose downloads never end holds 100 upstream connections at most, and keeps nobody waiting`, async (t) => {
    const { server, upstream, cookie, connection, call } = await startWorld(t, API)
    const url = new URL(server.url)
    upstream.answer = ({ target }, socket) =>
      void socket.write(target.includes('slow') ? ok('x'.repeat(5000)).slice(0, -1) : ok())
    const body = method === 'POST' ? 'Content-Length: 2\r\n\r\n{}' : '\r\n'
    const head = `${method} ${ACCOUNTS}?slow HTTP/1.1\r\nHost: localhost\r\nX-CSRF: 1\r\nCookie: ${cookie}\r\n${body}`
    const refusals: string[] = []
    const download = async (): Promise<Socket> => {
      const socket = await connection()
      socket.once('data', (chunk: Buffer) => {
        const text = chunk.toString('latin1')
        // This browser reads no more than the beginning.
        if (text.startsWith('HTTP/1.1 200 ')) socket.pause()
        else refusals.push(text)
      })
      socket.write(head)
      return socket
    }
    const downloads = await Promise.all(Array.from({ length: MOST + 30 }, download))
    await until(() => refusals.length === 30 && upstream.requests.length === MOST)
    t.match(refusals[0], /^HTTP\/1\.1 429 [^]*retry-after: 1\r\n[^]*rate_limited/i)
    t.equal((await call('GET', ACCOUNTS)).status, 429, 'the session has no other call either')

    const browser = new JarBrowser()
    await logIn(browser, url.origin, 'another@example.test')
    const headers = { cookie: browser.cookieHeader(url, url) }
    for (let count = 0; count < 10; count++) {
      t.equal((await call('GET', ACCOUNTS, { headers })).status, 200)
      t.equal((await call('POST', ACCOUNTS, { headers, body: '{}' })).status, 200)
    }
    for (const socket of downloads) socket.destroy()
    if (method === 'GET') {
      await until(async () => (await call('GET', ACCOUNTS)).status === 200, 'a browser that leaves frees them')
    }
  })
}

await test('the sessions of one user hold no more upstream connections together than one session alone', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const { upstream, server } = world
  const held: ServerResponse[] = []
  upstream.onRest = (_request, response) => void held.push(response)
  const cookieOf = async (user: string): Promise<string> =>
    (await world.user(user)).browser.cookieHeader(new URL(server.url), new URL(server.url))
  const call = (cookie: string) => sendTo(server.port, 'GET', ACCOUNTS, { headers: { cookie, 'x-csrf': '1' } })
  const cookies = [await cookieOf('CR1'), await cookieOf('CR1')]
  const refused: number[] = []
  const calls = cookies.flatMap((cookie) =>
    Array.from({ length: 80 }, async () => {
      const { status } = await call(cookie)
      if (status !== 200) refused.push(status)
    }),
  )
  await until(() => held.length + refused.length === 160)
  t.equal(held.length, MOST)
  t.same(new Set(refused), new Set([429]))
  const other = call(await cookieOf('CR2'))
  await until(() => held.length === MOST + 1, 'another user is not kept waiting')
  for (const response of held) answerJson(response, 200, {})
  t.equal((await other).status, 200)
  await Promise.all(calls)
})

await test('the sessions of one user whose one-time URLs do not come keep no other user from a trading socket', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const { upstream } = world
  const answer = upstream.onOtp
  const held: (() => void)[] = []
  upstream.onOtp = (...exchange) => void held.push(() => answer(...exchange))
  const opening: BrowserSocket[] = []
  for (let session = 0; session < 14; session++) {
    const user = await world.user('CR1')
    opening.push(...Array.from({ length: 5 }, () => user.socket(TRADING)))
  }
  await until(() => held.length === 16)
  upstream.onOtp = answer
  await (await world.user('CR2')).socket(TRADING).opened()
  await until(() => upstream.open === 1, 'another user is not kept waiting')
  t.equal(held.length, 16, 'a quarter of the connections')
  const [leaving] = opening.slice(-1)
  leaving?.socket.terminate()
  for (const send of held) send()
  await until(() => upstream.open === 70, 'the others have waited')
})
