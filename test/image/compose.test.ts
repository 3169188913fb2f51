import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Agent, fetch, type Response } from 'undici'
import { sendForm, sessionIs, testChromium } from '../support/browser/chromium.ts'
import { untilSlow as until } from '../support/time/until.ts'
import { clone } from './clone.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'
import { ACCOUNTS } from '../support/user.ts'

const PUBLIC_URL = 'https://localhost:8443'
const CALLERS = 6
const PAUSE_MS = 20
const LETTERS = 26
/** Changes with which no instance can become ready, each with its commands. */
const HARMFUL = [
  {
    cause: 'a mistyped setting',
    change: 'echo SESSION_IDLE_SECONDS=1h >.env',
    restore: 'rm .env',
    says: /SESSION_IDLE_SECONDS/,
  },
  {
    cause: 'a wrong password of Redis',
    // The running instances have the file itself, so a new one in its place is that of new instances alone.
    change:
      'cd deploy/secrets; mv redis-url kept; sed s/:[^:@]*@/:wrong@/ kept >redis-url; chmod --reference kept redis-url',
    restore: 'mv deploy/secrets/kept deploy/secrets/redis-url',
    says: /not ready: .*WRONGPASS/,
  },
  {
    cause: 'an issuer that cannot be reached',
    change: 'printf "DISCOVERY=true\\nISSUER=https://sandbox.localhost:4999\\n" >.env',
    restore: 'rm .env',
    says: /not ready: .*provider/,
  },
]

type Send = (path: string, init?: { method?: string; body?: string; origin?: string }) => Promise<Response>

/** The code block of docs/operating/ that starts with this text. @throws Error if there is none */
async function documented(start: string): Promise<string> {
  const blocks = [...OPERATING_GUIDE.matchAll(/^```\w*\n([^]*?)^```$/gm)].map(([, block = '']) => block)
  const found = blocks.find((block) => block.startsWith(start))
  if (found === undefined) throw new Error(`docs/operating/ has no code block that starts with ${start}`)
  return found
}

/** Logs in with Chromium. @returns the Cookie header of the session */
async function logIn(t: Test): Promise<string> {
  const context = await testChromium(t, { ignoreHTTPSErrors: true })
  const page = await context.newPage()
  await page.goto(`${PUBLIC_URL}/auth/signup`)
  await sendForm(page, 'trader@example.test')
  await page.waitForURL(`${PUBLIC_URL}/`)
  await sessionIs(page, 'authenticated')
  const cookies = await context.cookies(PUBLIC_URL)
  await context.close()
  return cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
}

/** Sends requests with this cookie over HTTP/1.1 or HTTP/2. */
function sender(t: Test, cookie: string, ca: string, allowH2: boolean): Send {
  const dispatcher = new Agent({ allowH2, connect: { ca } })
  t.teardown(() => dispatcher.destroy())
  const headers = { cookie, 'x-csrf': '1', 'content-type': 'application/json' }
  return (path, init = {}) => fetch(new URL(path, PUBLIC_URL), { ...init, headers, dispatcher })
}

/** The number of accounts that have been ordered. */
let accounts = 0

/**
 * Makes one call after the other with each sender. Every other call orders an account that does not exist yet: the
 * response is 201, or 200 if the order was executed before.
 */
class Load {
  readonly outcomes: { call: string; expected: number; outcome: unknown }[] = []
  readonly #running: Promise<void>[]
  #isOver = false

  /** It ends with the test at the latest. */
  constructor(t: Test, sends: readonly Send[]) {
    t.teardown(() => this.stop())
    this.#running = sends.map((send) => this.#run(send))
  }

  async #run(send: Send): Promise<void> {
    for (let count = 0; !this.#isOver; count++) {
      await (count % 2 === 0 ? this.#read(send) : this.#order(send))
      await delay(PAUSE_MS)
    }
  }

  /** Resolves after the last response. @returns the failed calls */
  async stop(): Promise<unknown[]> {
    this.#isOver = true
    await Promise.all(this.#running)
    return this.outcomes.filter(({ expected, outcome }) => outcome !== expected)
  }

  #read(send: Send): Promise<void> {
    return this.#record('read', 200, send(ACCOUNTS))
  }

  #order(send: Send): Promise<void> {
    const number = accounts++
    const letters = [number / LETTERS ** 2, number / LETTERS, number].map((digit) => Math.floor(digit) % LETTERS)
    const currency = String.fromCharCode(...letters.map((letter) => 65 + letter))
    const body = JSON.stringify({ account_type: 'demo', currency, group: 'row' })
    // The USD account exists from the start.
    return this.#record(currency, currency === 'USD' ? 200 : 201, send(ACCOUNTS, { method: 'POST', body }))
  }

  async #record(call: string, expected: number, sent: Promise<Response>): Promise<void> {
    // A response may also be cut off in its middle.
    const outcome = await sent
      .then(async (response) => (await response.arrayBuffer(), response.status))
      .catch((error: unknown) => String((error as Error).cause ?? error))
    this.outcomes.push({ call, expected, outcome })
  }
}

await test('docker-compose.yml: calls survive a rolling update, scaling, a killed instance and a Redis outage as documented', async (t) => {
  const shell = await clone(t)
  const start = await documented('npm ci && npm run build:page')
  t.match(start, /up --build\n$/)
  await shell(start.replace('npm ci && ', '').replace('up --build', 'up --build --detach --wait'))
  const ca = await shell('cat deploy/secrets/certificate.pem')
  const anonymous = sender(t, '', ca, false)
  await until(async () => (await anonymous('/').catch(() => undefined))?.ok === true)
  const cookie = await logIn(t)
  t.match(cookie, /\b__Host-session=/, 'the browser is logged in through TLS at the balancer')
  const sends = Array.from({ length: CALLERS }, (_, caller) => sender(t, cookie, ca, caller % 2 === 0))
  const [send = anonymous] = sends
  const containers = async (): Promise<string[]> => (await shell('docker compose ps -q app')).trim().split('\n')
  const before = await containers()
  t.equal(before.length, 3)

  const rolled = new Load(t, sends)
  await shell(await documented('docker compose build app'))
  t.same(await rolled.stop(), [], `all ${rolled.outcomes.length} calls succeed during the rolling update`)
  const after = await containers()
  t.equal(after.length, 3)
  t.notOk(
    before.some((id) => after.includes(id)),
    'every container is new',
  )

  const stopped = new Load(t, sends)
  for (const { cause, change, restore, says } of HARMFUL) {
    await shell(change)
    const output = await shell('{ ! deploy/roll.sh; } 2>&1')
    await shell(restore)
    t.match(output, says, `${cause}: the roll says why`)
    t.same(await containers(), after, `${cause}: the roll stops, and no instance was replaced`)
  }
  t.same(await stopped.stop(), [], `all ${stopped.outcomes.length} calls succeed while three rolls stop`)

  const scaled = new Load(t, sends)
  await shell('docker compose up --detach --no-deps --no-recreate --scale app=10 app')
  await delay(3000)
  t.same(await scaled.stop(), [], `all ${scaled.outcomes.length} calls succeed while seven instances start`)
  await shell('docker compose up --detach --no-deps --no-recreate --scale app=3 app')

  const [victim = ''] = await containers()
  const killed = new Load(t, sends)
  await delay(2000)
  await shell(`docker kill ${victim}`)
  await delay(4000)
  const lost = (await killed.stop()) as { outcome: unknown }[]
  t.ok(lost.length <= CALLERS, `${lost.length} of ${killed.outcomes.length} calls are lost with the killed instance`)
  t.same(
    lost.filter(({ outcome }) => outcome === 503),
    [],
    'no other call is lost',
  )

  await shell('docker compose stop --timeout 1 redis')
  await until(async () =>
    (await shell('docker compose logs balancer')).includes('backend instances has no server available'),
  )
  t.equal((await anonymous('/')).status, 200, 'the balancer serves the page without Redis')
  const refused = await send(ACCOUNTS)
  t.match([refused.status, await refused.json()], [503, { code: 'session_store_unavailable' }])
  await shell('docker compose start redis')
  // The instances reconnect to Redis one after another.
  let session = await send('/auth/session')
  await until(async () => (session = await send('/auth/session')).status !== 503)
  t.match(await session.json(), { authenticated: true }, 'the session survives the outage of Redis')
})
