import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { SESSION_KEYS } from '../../src/store/keys.ts'
import { json, scripted, tokens, type TokenEndpoint } from '../support/login/token-endpoint.ts'
import type { LogLine, TestServer } from '../support/server/test-server.ts'
import { seededRandom } from '../support/time/seeded-random.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

const RUNS = Number(process.env['RUNS'] ?? 8)
const STEPS = 14
/** One browser keeps the cookies of ten logins that have begun. */
const MAX_STARTS = 9
/** The longest time that a request, or the provider, takes (ms). */
const MAX_MS = 60

interface Answer {
  readonly status: number
  readonly setCookies: readonly string[]
  readonly location: string | null
}

/** A browser on a bad network: its requests may leave late, with the cookies of before, and answers may come late or never. */
class LateBrowser {
  /** What it did, for a reader of a failed run. */
  readonly story: string[] = []
  readonly #cookies = new Map<string, string>()
  readonly #underWay: (() => void)[] = []
  readonly #servers: readonly TestServer[]
  readonly #random: () => number

  constructor(servers: readonly TestServer[], random: () => number) {
    this.#servers = servers
    this.#random = random
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item
  }

  /** @param onArrival called when the browser has its answer */
  async act(path: string, onArrival = (_answer: Answer): void => undefined): Promise<Answer> {
    const answer = await this.#ask(path)
    const what = `${path.slice(0, 60)}: ${answer.status} ${answer.location?.slice(0, 60)}`
    const chance = this.#random()
    this.story.push(`${what}${chance < 0.6 ? '' : chance < 0.8 ? ', late' : ', lost'}`)
    const arrive = (): void => {
      this.#keep(answer)
      onArrival(answer)
    }
    if (chance < 0.6) arrive()
    else if (chance < 0.8) this.#underWay.push(() => (this.story.push(`arrives: ${what}`), arrive()))
    return answer
  }

  async leave(): Promise<number> {
    const answer = await this.#ask('/auth/logout')
    this.#keep(answer)
    return answer.status
  }

  async #ask(path: string): Promise<Answer> {
    const cookie = [...this.#cookies].map((pair) => pair.join('=')).join('; ')
    if (this.#random() < 0.3) await delay(this.#random() * MAX_MS)
    const response = await fetch(this.pick(this.#servers).url + path, {
      method: path === '/auth/logout' ? 'POST' : 'GET',
      redirect: 'manual',
      headers: { cookie, 'x-csrf': '1', 'sec-fetch-site': 'same-origin' },
    })
    await response.text()
    const { status, headers } = response
    return { status, setCookies: headers.getSetCookie(), location: headers.get('location') }
  }

  /** One of the late answers arrives. */
  arrive(): void {
    this.#underWay.splice(Math.floor(this.#random() * this.#underWay.length), 1)[0]?.()
  }

  /** Some of the late answers arrive, the others never. */
  settle(): void {
    for (const arrive of this.#underWay.splice(0)) if (this.#random() < 0.5) arrive()
  }

  #keep({ setCookies }: Answer): void {
    for (const line of setCookies) {
      const [name = '', value = ''] = (line.split(';')[0] ?? '').split('=')
      if (/max-age=0/i.test(line)) this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
  }
}

/** Some tabs of a browser log in, reload, and log out, at the same time and one after the other. */
async function tabs(t: Test, browser: LateBrowser, random: () => number): Promise<void> {
  const states: string[] = []
  let starts = 0
  const acts: Record<string, () => Promise<unknown>> = {
    async start() {
      if (starts++ >= MAX_STARTS) return
      await browser.act(browser.pick(['/auth/login', '/auth/signup']), ({ location }) => {
        states.push(new URL(location ?? '').searchParams.get('state') ?? '')
      })
    },
    async callback() {
      if (states.length === 0) return
      const code = random() < 0.15 ? 'refused' : crypto.randomUUID()
      await browser.act(`/auth/callback?state=${browser.pick(states)}&code=${code}`)
    },
    logout: async () => t.equal((await browser.act('/auth/logout')).status, 204),
    arrive: async () => browser.arrive(),
  }
  const names = ['start', 'start', 'callback', 'callback', 'callback', 'logout', 'arrive']
  for (let step = 0; step < STEPS; step++) {
    const atOnce = random() < 0.4 ? 1 + Math.floor(random() * 4) : 1
    await Promise.all(Array.from({ length: atOnce }, async () => acts[browser.pick(names)]?.()))
  }
}

/** Tokens of its own for each code. @returns the tokens that it has given out */
function tokensFor(provider: TokenEndpoint, random: () => number): Set<string> {
  const given = new Set<string>()
  provider.behaviour = async (request, response, form) => {
    const code = form.get('code') ?? ''
    if (random() < 0.3) await delay(random() * MAX_MS)
    if (code === 'refused') return json({ error: 'invalid_grant' }, 400)(request, response, form)
    given.add(code)
    return tokens({ access_token: code })(request, response, form)
  }
  return given
}

await test('However late the answers of logins and logouts are, a logout ends all that a browser has begun, and each end is told once', async (t) => {
  const { seed, random } = seededRandom()
  t.comment(`SEED=${seed}`)
  const world = await startWorld(t, { provider: scripted, redis: true, settings: { AUTH_STARTS_PER_MINUTE: '0' } })
  const servers = [world.server, await world.instance()]
  const client = await world.storeClient()
  const given = tokensFor(world.provider, random)
  const ends = (): LogLine[] => servers.flatMap(({ log }) => log.filter(({ audit }) => audit === 'session_ended'))
  let logins = 0
  for (let run = 0; run < RUNS; run++) {
    given.clear()
    for (const { log } of servers) log.length = 0
    const browser = new LateBrowser(servers, random)
    await tabs(t, browser, random)
    browser.settle()
    t.equal(await browser.leave(), 204)
    const keys = await client.keys(`${SESSION_KEYS.prefix}*`)
    t.same(
      keys.filter(({ length }) => length === SESSION_KEYS.length),
      [],
      browser.story.join('\n'),
    )
    await until(() => ends().length >= given.size, 'each end is told')
    // Those that another login has replaced keep their tokens.
    const loggedOut = ends().filter(({ reason }) => reason === 'logout').length
    const revoked = (): number => [...given].filter((token) => world.provider.revoked.includes(token)).length
    await until(() => revoked() >= loggedOut, 'the tokens of those that were logged out are revoked')
    t.same(new Set(ends().map(({ session }) => session)).size, ends().length, 'once')
    t.same([ends().length, revoked()], [given.size, loggedOut], browser.story.join('\n'))
    logins += given.size
  }
  t.ok(logins > RUNS, `${logins} logins`)
})
