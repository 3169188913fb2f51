import { randomUUID } from 'node:crypto'
import { test, type Test } from 'tap'
import type { JarBrowser } from '../support/browser/jar-browser.ts'
import { operate, OPS_TOKEN } from '../support/login/identity.ts'
import { epoch, oidcWorld, type Claims, type OidcWorld } from '../support/login/oidc-world.ts'
import { isLoggedIn } from '../support/login/token-endpoint.ts'
import { testServer, type TestServer } from '../support/server/test-server.ts'
import { seededRandom } from '../support/time/seeded-random.ts'
import { logOut } from '../support/user.ts'

const [RUNS, STEPS] = [Number(process.env['RUNS'] ?? 2), Number(process.env['STEPS'] ?? 40)]
const USERS = ['ada', 'bob']
/** A login that begins so soon after an end of all its user's sessions may be taken for an earlier one (ms). */
const SOON_MS = 1000

interface Held {
  readonly browser: JarBrowser
  readonly sub: string
  readonly sid: string | undefined
  readonly iat: number
  lives: boolean
}

const isWithin = (ms: number, endedAt = -Infinity): boolean => performance.now() - endedAt <= ms

/** What the provider has said so far, and which sessions must live by that. */
class Model {
  readonly sessions: Held[] = []
  readonly #sids = new Map<string, number>()
  readonly #issued = new Map<string, number>()
  readonly #sidless = new Map<string, number>()
  readonly #allEnded = new Map<string, number>()

  /** Whether a login that begins now may live; `maybe` where an end of all, or of its sid, is too near. */
  mayLive({ sub, sid, iat }: Pick<Held, 'sub' | 'sid' | 'iat'>): boolean | 'maybe' {
    if (iat <= (this.#issued.get(sub) ?? 0)) return false
    if (sid === undefined && iat <= (this.#sidless.get(sub) ?? 0)) return false
    return isWithin(SOON_MS, this.#allEnded.get(sub)) || isWithin(20, this.#sids.get(sid ?? '')) ? 'maybe' : true
  }

  logOut({ sub, sid, iat }: { sub?: string | undefined; sid?: string | undefined; iat: number }): void {
    if (sid !== undefined) {
      this.#sids.set(sid, performance.now())
      this.#end((session) => session.sid === sid)
      if (sub === undefined) return
      this.#sidless.set(sub, Math.max(iat, this.#sidless.get(sub) ?? 0))
      this.#end((session) => session.sub === sub && session.sid === undefined && session.iat <= iat)
    } else if (sub !== undefined) {
      this.#issued.set(sub, Math.max(iat, this.#issued.get(sub) ?? 0))
      this.#end((session) => session.sub === sub && session.iat <= iat)
    }
  }

  endAll(sub: string): void {
    this.#end((session) => session.sub === sub)
    this.#allEnded.set(sub, performance.now())
  }

  #end(ends: (session: Held) => boolean): void {
    for (const session of this.sessions) if (ends(session)) session.lives = false
  }
}

/** Runs one random story, and compares the servers with the model after each step. */
async function story(t: Test, world: OidcWorld, servers: readonly TestServer[], random: () => number): Promise<void> {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item
  const model = new Model()
  const run = randomUUID()
  const users = USERS.map((name) => `${name} of ${run}`)
  const sids = Array.from({ length: 5 }, (_each, at) => `sid ${at} of ${run}`)
  const iat = (): number => epoch(-Math.floor(random() * 20))
  const said: { token: string; claims: Parameters<Model['logOut']>[0] }[] = []
  const post = async ({ token, claims }: (typeof said)[number]): Promise<void> => {
    t.equal((await world.postLogout(token, pick(servers))).status, 200)
    model.logOut(claims)
  }
  const script = { method: 'POST', headers: { 'x-csrf': '1' } }
  const actions: Record<string, () => Promise<void>> = {
    async login() {
      const login = { sub: pick(users), sid: random() < 0.3 ? undefined : pick(sids), iat: iat() }
      const expected = model.mayLive(login)
      const { browser, arrival } = await world.user(login.sub, { sid: login.sid, iat: login.iat }, pick(servers))
      const lives = arrival.url.search === ''
      if (expected !== 'maybe') t.equal(lives, expected, JSON.stringify(login))
      model.sessions.push({ ...login, browser, lives })
    },
    async backchannel() {
      const kind = random()
      const claims: Claims = {
        ...(kind < 0.6 && { sub: pick(users) }),
        ...(kind > 0.3 && { sid: pick(sids) }),
        iat: iat(),
      }
      const each = { token: await world.logoutToken(claims), claims: claims as Parameters<Model['logOut']>[0] }
      said.push(each)
      await post(each)
    },
    async replay() {
      if (said.length > 0) await post(pick(said))
    },
    async refresh() {
      const { browser, lives } = pick(model.sessions)
      browser.page = new URL(world.server.url)
      const { status } = await browser.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })
      // Upstream is away.
      t.equal(status, lives ? 502 : 401)
    },
    async logout() {
      const session = pick(model.sessions)
      session.browser.page = new URL(world.server.url)
      const query = random() < 0.5 ? '?provider=true' : ''
      t.equal((await session.browser.fetch(`/auth/logout${query}`, script)).status, query === '' ? 204 : 200)
      session.lives = false
    },
    async everywhere() {
      const session = pick(model.sessions)
      const { status } = await logOut(session.browser, world.server.url, '?everywhere=true')
      t.equal(status, session.lives ? 204 : 409)
      if (session.lives) model.endAll(session.sub)
    },
    async operator() {
      const sub = pick(users)
      t.equal((await operate(pick(servers), 'DELETE', { subject: `${world.issuer}#${sub}` })).status, 200)
      model.endAll(sub)
    },
  }
  await actions['login']?.()
  const names = ['login', 'login', 'login', 'backchannel', 'backchannel', 'refresh', 'replay', 'logout']
  for (let step = 0; step < STEPS; step++) {
    const name = random() < 0.08 ? pick(['everywhere', 'operator']) : pick(names)
    await actions[name]?.()
    const { url } = pick(servers)
    const found = await Promise.all(model.sessions.map(({ browser }) => isLoggedIn(browser, url)))
    const expected = model.sessions.map(({ lives }) => lives)
    if (found.join() !== expected.join()) t.same(found, expected, `step ${step}: ${name}`)
  }
  t.ok(model.sessions.length > 5)
}

await test('Whatever the order of logins, refreshes and logouts of all kinds, exactly the sessions live that must', async (t) => {
  const { seed, random } = seededRandom()
  t.comment(`SEED=${seed}`)
  const settings = { BACKCHANNEL_WITHOUT_SID: 'subject', OPS_TOKEN, ID_TOKEN_HINT: 'true' }
  const world = await oidcWorld(t, { redis: true, settings })
  world.tokens = { refresh_token: 'a-refresh-token', expires_in: 0.001 }
  const { idToken } = world
  // A provider need not send an ID token with a refresh, which has no sub here.
  world.idToken = async (claims) => (claims.sub === undefined ? undefined : idToken(claims))
  const other = await testServer(t, { ...world.settings, REDIS_URL: world.redis?.url ?? '' })
  for (let run = 0; run < RUNS; run++) await story(t, world, [world.server, other], random)
})
