import type { FastifyReply } from 'fastify'
import { test, type Test } from 'tap'
import { redirectorTo } from '../../src/login/other-name.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { replace } from '../support/time/replace.ts'

const NAVIGATES = { 'sec-fetch-mode': 'navigate' }
const WARNING = 'A login began under another name than that of PUBLIC_URL, and fails unless a proxy rewrites Host'

/** A server with this address, and where it redirects the logins that begin under other names. */
function redirector(t: Test, publicUrl = 'http://localhost:3000', listed: readonly string[] = []) {
  const world = { now: 1000 }
  replace(t, performance, 'now', () => world.now)
  const lines: unknown[][] = []
  const log = { warn: (...args: unknown[]) => lines.push(args) }
  const isRedirected = redirectorTo(publicUrl, { isListed: (origin) => listed.includes(String(origin)) })
  const begin = (host: string, headers: object = NAVIGATES, text = ''): unknown => {
    const redirects: unknown[] = []
    const request = { host, headers, query: { text }, routeOptions: { url: '/auth/login' }, log }
    const reply = { redirect: (...args: unknown[]) => redirects.push(args) } as unknown as FastifyReply
    const is = isRedirected(request as unknown as Parameters<typeof isRedirected>[0], reply)
    t.equal(is, redirects.length === 1)
    return redirects[0]
  }
  return { world, lines, begin }
}

await test('a navigation under another loopback name is redirected to the same path and query of PUBLIC_URL', (t) => {
  const { begin, lines } = redirector(t)
  t.strictSame(begin('127.0.0.1:3000'), ['http://localhost:3000/auth/login', 303])
  t.strictSame(begin('[::1]:3000', NAVIGATES, 'a=%zz&b'), ['http://localhost:3000/auth/login?a=%zz&b', 303])
  for (const host of ['localhost:3000', 'LOCALHOST:5173', 'localhost', 'not a host', '']) {
    t.equal(begin(host), undefined, host)
  }
  t.strictSame(lines, [])
  t.end()
})

await test('a script or an old browser keeps its cookies as it likes, and begins there', (t) => {
  const { begin, lines } = redirector(t)
  for (const headers of [{}, { 'sec-fetch-mode': 'cors' }]) t.equal(begin('127.0.0.1:3000', headers), undefined)
  t.strictSame(lines, [])
  t.end()
})

await test('a port leads back to PUBLIC_URL only if a page has it', (t) => {
  const { begin, lines } = redirector(t, 'http://localhost:3000', ['http://localhost:5183'])
  t.ok(begin('127.0.0.1:5183'))
  t.strictSame(lines, [])
  t.equal(begin('127.0.0.1:5184'), undefined)
  t.strictSame(lines, [[{ host: '127.0.0.1', publicUrl: 'http://localhost:3000' }, WARNING]])
  t.end()
})

await test('a name that is no loopback one is not redirected, whatever its port is, nor is any in production', (t) => {
  const near = redirector(t)
  t.equal(near.begin('192.0.2.1:3000'), undefined)
  t.match(near.lines, [[{ host: '192.0.2.1' }]])
  const far = redirector(t, 'https://bff.test')
  for (const [host, headers] of [
    ['127.0.0.1', NAVIGATES],
    ['www.bff.test', {}],
  ] as const) {
    t.equal(far.begin(host, headers), undefined)
  }
  t.equal(far.lines.length, 1)
  t.end()
})

await test('ten logins are redirected in ten seconds, so that a proxy which rewrites Host keeps no browser from the eleventh', (t) => {
  const { world, begin, lines } = redirector(t)
  for (let count = 0; count < 10; count++) t.ok(begin('127.0.0.1:3000'))
  t.equal(begin('127.0.0.1:3000'), undefined)
  t.equal(lines.length, 1)
  world.now += 9999
  t.equal(begin('127.0.0.1:3000'), undefined)
  world.now += 1
  t.ok(begin('127.0.0.1:3000'))
  t.end()
})

await test('the warning comes once an hour, says for how many logins it stands, and is never longer for a longer name', (t) => {
  const hours = new HeldTimers(t, 'setInterval', 3_600_000)
  const { begin, lines } = redirector(t, 'https://bff.test')
  const long = `${'a'.repeat(63)}.${'b'.repeat(63)}.example`
  begin('www.bff.test')
  for (let count = 0; count < 3; count++) begin(long)
  t.strictSame(lines, [[{ host: 'www.bff.test', publicUrl: 'https://bff.test' }, WARNING]])
  hours.run()
  t.strictSame(lines.slice(1), [[{ host: long.slice(0, 128), publicUrl: 'https://bff.test', count: 3 }, WARNING]])
  t.end()
})
