import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { chromium } from 'playwright-core'
import { test, type Test } from 'tap'
import { Agent, fetch, type Response } from 'undici'
import { CHROMIUM, CHROMIUM_ARGUMENTS } from '../support/chromium.ts'
import { untilSlow as until } from '../support/until.ts'
import { execute, NAME, ROOT } from './docker.ts'

const PUBLIC_URL = 'https://localhost:8443'
const ACCOUNTS = '/api/trading/v1/options/accounts'
const CALLERS = 6
const PAUSE_MS = 20
const LETTERS = 26
/** What the documented commands need of the repository. */
const USED = [
  ...['src', 'sandbox', 'deploy', 'package.json', 'package-lock.json'],
  ...['Dockerfile', '.dockerignore', 'docker-compose.yml'],
]
const isNoSecret = (path: string): boolean => path !== join(ROOT, 'deploy/secrets')

type Send = (path: string, init?: { method?: string; body?: string; origin?: string }) => Promise<Response>

/** The commands of docs/operating.md that begin with these words, as a shell takes them. */
async function documented(start: string): Promise<string> {
  const guide = await readFile(join(ROOT, 'docs/operating.md'), 'utf8')
  const blocks = [...guide.matchAll(/^```\w*\n([^]*?)^```$/gm)].map(([, block = '']) => block)
  const found = blocks.find((block) => block.startsWith(start))
  if (found === undefined) throw new Error(`docs/operating.md has no commands that begin with ${start}`)
  return found
}

/** A clone in which the documented commands are run. What they started goes when the test ends. */
async function clone(t: Test): Promise<(script: string) => Promise<string>> {
  // Where hard links of node_modules can be.
  const dir = await mkdtemp(join(ROOT, '.tap/image-test-'))
  for (const name of USED)
    await cp(join(ROOT, name), join(dir, name), { recursive: true, filter: isNoSecret })
  await execute('cp', ['-al', join(ROOT, 'node_modules'), join(dir, 'node_modules')])
  // A name of its own, so that nobody's containers are touched.
  const env = { COMPOSE_PROJECT_NAME: NAME, STATIC_DIR: '/sandbox-page' }
  const shell = (script: string): Promise<string> =>
    execute('bash', ['-euo', 'pipefail', '-c', script], { cwd: dir, env })
  t.teardown(async () => {
    await shell('docker compose --profile sandbox down --volumes --timeout 1 --rmi local')
    await rm(dir, { recursive: true })
  })
  return shell
}

/** Logs a real browser in, and gives out the session that it has then. */
async function logIn(): Promise<string> {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_ARGUMENTS })
  try {
    const context = await browser.newContext({ ignoreHTTPSErrors: true })
    const page = await context.newPage()
    await page.goto(`${PUBLIC_URL}/auth/signup`)
    await page.fill('input[name=email]', 'trader@example.test')
    await page.fill('input[name=password]', 'any')
    await page.click('[data-action=continue]')
    await page.waitForURL(`${PUBLIC_URL}/`)
    await page.locator('[data-testid=session-state][data-state=authenticated]').waitFor()
    const cookies = await context.cookies(PUBLIC_URL)
    return cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
  } finally {
    await browser.close()
  }
}

function sender(t: Test, cookie: string, ca: string, allowH2: boolean): Send {
  const dispatcher = new Agent({ allowH2, connect: { ca } })
  t.teardown(() => dispatcher.destroy())
  const headers = { cookie, 'x-csrf': '1', 'content-type': 'application/json' }
  return (path, init = {}) => fetch(new URL(path, PUBLIC_URL), { ...init, headers, dispatcher })
}

/** How many have been ordered. */
let accounts = 0

/** Calls one after the other, half of them orders: each for an account that must not exist yet, or else it answers 200. */
class Load {
  readonly outcomes: { call: string; expected: number; outcome: unknown }[] = []
  readonly #running: Promise<void>[]
  #isOver = false

  constructor(sends: readonly Send[]) {
    this.#running = sends.map((send) => this.#run(send))
  }

  async #run(send: Send): Promise<void> {
    for (let count = 0; !this.#isOver; count++) {
      await (count % 2 === 0 ? this.#read(send) : this.#order(send))
      await delay(PAUSE_MS)
    }
  }

  /** Resolves when the last call has been answered. @returns those that went wrong */
  async stop(): Promise<unknown[]> {
    this.#isOver = true
    await Promise.all(this.#running)
    return this.outcomes.filter(({ expected, outcome }) => outcome !== expected)
  }

  #read(send: Send): Promise<void> {
    return this.#note('read', 200, send(ACCOUNTS))
  }

  #order(send: Send): Promise<void> {
    const number = accounts++
    const letters = [number / LETTERS ** 2, number / LETTERS, number].map(
      (digit) => Math.floor(digit) % LETTERS,
    )
    const currency = String.fromCharCode(...letters.map((letter) => 65 + letter))
    const body = JSON.stringify({ account_type: 'demo', currency })
    // One that is there from the start.
    return this.#note(currency, currency === 'USD' ? 200 : 201, send(ACCOUNTS, { method: 'POST', body }))
  }

  async #note(call: string, expected: number, answer: Promise<Response>): Promise<void> {
    const outcome = await answer.then(
      async (response) => (await response.arrayBuffer(), response.status),
      (error: unknown) => String((error as Error).cause ?? error),
    )
    this.outcomes.push({ call, expected, outcome })
  }
}

await test('docker-compose.yml as it stands: a login, a roll, more instances, a death, Redis away', async (t) => {
  const shell = await clone(t)
  const start = await documented('npm ci && deploy/make-secrets.sh')
  t.match(start, /up --build\n$/)
  await shell(start.replace('npm ci && ', '').replace('up --build', 'up --build --detach --wait'))
  const ca = await shell('cat deploy/secrets/certificate.pem')
  const stranger = sender(t, '', ca, false)
  await until(async () => (await stranger('/').catch(() => undefined))?.ok === true)
  const cookie = await logIn()
  t.match(cookie, /\b__Host-session=/, 'logged in through TLS at the balancer')
  const sends = Array.from({ length: CALLERS }, (_, caller) => sender(t, cookie, ca, caller % 2 === 0))
  const [send = stranger] = sends
  const containers = async (): Promise<string[]> =>
    (await shell('docker compose ps -q app')).trim().split('\n')
  const before = await containers()
  t.equal(before.length, 3)

  const rolled = new Load(sends)
  await shell(await documented('docker compose build app'))
  t.same(await rolled.stop(), [], `${rolled.outcomes.length} calls during the documented roll`)
  const after = await containers()
  t.equal(after.length, 3)
  t.notOk(
    before.some((id) => after.includes(id)),
    'all are new',
  )

  const scaled = new Load(sends)
  await shell('docker compose up --detach --no-deps --no-recreate --scale app=10 app')
  await delay(3000)
  t.same(await scaled.stop(), [], `${scaled.outcomes.length} calls while seven more start`)
  await shell('docker compose up --detach --no-deps --no-recreate --scale app=3 app')

  const [victim = ''] = await containers()
  const bereaved = new Load(sends)
  await delay(2000)
  await shell(`docker kill ${victim}`)
  await delay(4000)
  const lost = (await bereaved.stop()) as { outcome: unknown }[]
  t.ok(
    lost.length <= CALLERS,
    `${lost.length} of ${bereaved.outcomes.length} calls lost with an instance that was killed`,
  )
  t.same(
    lost.filter(({ outcome }) => outcome === 503),
    [],
    'none that it never saw',
  )

  await shell('docker compose stop --timeout 1 redis')
  await until(async () =>
    (await shell('docker compose logs balancer')).includes('backend instances has no server available'),
  )
  t.equal((await stranger('/')).status, 200, 'without Redis: the page')
  const refused = await send(ACCOUNTS)
  t.match([refused.status, await refused.json()], [503, { code: 'session_store_unavailable' }])
  await shell('docker compose start redis')
  // Each instance comes back in its own time.
  let session = await send('/auth/session')
  while (session.status === 503) session = await send('/auth/session')
  t.match(await session.json(), { authenticated: true }, 'Redis is back, and the session with it')
})
