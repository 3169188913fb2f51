import { readFileSync } from 'node:fs'
import { Pool } from 'undici'
import { test, type Test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { logIn } from '../support/parts.ts'
import { atOnce, sizedServer, type SizedServer } from '../support/server/sized-server.ts'
import { ACCOUNTS, PUBLIC, TRADING, TRANSFER } from '../support/user.ts'

const PAGE = readFileSync(new URL('../../docs/operating/sizing.md', import.meta.url), 'utf8')
const UNITS: Readonly<Record<string, number>> = { KB: 1000, MB: 1e6 }
/** A documented figure is right within this part of it. */
const TOLERANCE = 0.25
const SESSION = '/ws/session'
/** Of fewer sockets each takes more, since the memory of a new process grows at first whatever it does. */
const SOCKETS = 6000
/** What the kernel holds for a connection, as measured once in a container: it counts for that, and not as resident memory. */
const KERNEL_BYTES = 3000
const USERS = 200
const ORDERS = 25
/** Calls that are measured, and those that were made before, until most code is compiled. */
const CALLS = 5000

/** Compares what was measured with the row of docs/operating/sizing.md that begins so. */
function holds(t: Test, row: string, measured: number): void {
  const [, number = '', unit = ''] = new RegExp(`^\\| ${row}[^|]* \\| ([\\d.,]+) (KB|MB) \\|`, 'm').exec(PAGE) ?? []
  const documented = Number(number.replaceAll(',', '')) * (UNITS[unit] ?? NaN)
  const said = `${row}: ${Math.round(measured)} measured, ${documented} documented`
  t.comment(said)
  t.ok(Math.abs(measured - documented) <= TOLERANCE * documented, said)
}

/** The same for processor time (µs), of which the page has a range: it differs from machine to machine. */
function holdsWithin(t: Test, row: string, measured: number): void {
  const [, from, to] = new RegExp(`^\\| ${row}[^|]* \\| (\\d+)–(\\d+) µs \\|`, 'm').exec(PAGE) ?? []
  const said = `${row}: ${Math.round(measured)} measured, ${from} to ${to} documented`
  t.comment(said)
  t.ok(measured >= (1 - TOLERANCE) * Number(from) && measured <= (1 + TOLERANCE) * Number(to), said)
}

/** Makes so many calls with these sessions in turn. */
async function calls(
  { port }: SizedServer,
  cookies: readonly string[],
  count: number,
  key?: (index: number) => string,
) {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 50 })
  await atOnce(count, async (index) => {
    const cookie = cookies[index % cookies.length] ?? ''
    const headers = { cookie, 'x-csrf': '1', ...(key && { 'idempotency-key': key(index) }) }
    const order = { method: 'POST', path: TRANSFER, body: '{"amount":1}' } as const
    const { statusCode, body } = await pool.request({
      ...(key === undefined ? ({ method: 'GET', path: ACCOUNTS } as const) : order),
      headers,
    })
    await body.text()
    if (statusCode !== 200) throw new Error(`status ${statusCode}`)
  })
  await pool.close()
}

for (const [row, path, connections, settings] of [
  ['a trading socket', TRADING, 2, {}],
  ['a public socket with an upstream socket of its own', PUBLIC, 2, {}],
  ['a public socket on the shared feed', PUBLIC, 1, { PUBLIC_FEED: 'shared' }],
  ['a session socket', SESSION, 1, { MAX_SESSION_SOCKETS_PER_IP: '10000' }],
] as const) {
  await test(`docs/operating/sizing.md says how much memory ${row} takes`, async (t) => {
    const server = await sizedServer(t, settings)
    const cookies = await server.sessions(SOCKETS)
    let cpu = 0
    const resident = await server.memoryEach(SOCKETS, async () => {
      cpu = await server.cpuEach(SOCKETS, () => server.open(path, cookies, path !== SESSION))
    })
    holds(t, row, resident + connections * KERNEL_BYTES)
    if (path === TRADING) holdsWithin(t, 'opening a trading socket', cpu)
  })
}

await test('docs/operating/sizing.md says what users and orders take in Redis, and calls of the processor', async (t) => {
  const server = await sizedServer(t)
  const users = Array.from({ length: USERS }, () => new JarBrowser())
  const logins = (): Promise<void> =>
    atOnce(USERS, async (index) => {
      const browser = users[index]
      if (browser !== undefined) await logIn(browser, server.publicUrl, `user-${index}`)
    })
  let login = 0
  holds(
    t,
    'a user who has logged in',
    await server.redisEach(USERS, async () => {
      login = await server.cpuEach(USERS, logins)
    }),
  )
  const page = new URL(server.publicUrl)
  const cookies = users.map((browser) => browser.cookieHeader(page, page))
  await calls(server, cookies, CALLS)
  holds(t, 'a busy process', await server.residentBytes())
  const get = await server.cpuEach(CALLS, () => calls(server, cookies, CALLS))
  let order = 0
  holds(
    t,
    'an order with an `Idempotency-Key`',
    await server.redisEach(USERS * ORDERS, async () => {
      order = await server.cpuEach(USERS * ORDERS, () =>
        calls(server, cookies, USERS * ORDERS, (index) => `key-${index}`),
      )
    }),
  )
  holdsWithin(t, 'a login', login)
  holdsWithin(t, 'a GET', get)
  holdsWithin(t, 'an order with its', order)
})

await test('docs/operating/sizing.md says what an order takes in Redis with IDEMPOTENCY_COMPACT', async (t) => {
  const server = await sizedServer(t, { IDEMPOTENCY_COMPACT: 'true' })
  const cookies = await server.sessions(USERS)
  // Everything is there that is not there for an order alone.
  await calls(server, cookies, USERS, (index) => `first-${index}`)
  const orders = (): Promise<void> => calls(server, cookies, USERS * ORDERS, (index) => `key-${index}`)
  holds(t, 'the same order with `IDEMPOTENCY_COMPACT`', await server.redisEach(USERS * ORDERS, orders))
})
