import { randomUUID } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import { test } from 'tap'
import { JarBrowser, type Arrival } from '../support/browser/jar-browser.ts'
import { pageClient } from '../support/client/page-client.ts'
import { PUBLIC_URL } from '../support/deployment/deployed-balancer.ts'
import { deployment, hasServed } from '../support/deployment/deployed.ts'
import { Caller, Lines } from '../support/deployment/load.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { logIn } from '../support/parts.ts'
import { previousVersion } from '../support/server/previous-version.ts'
import type { ServerProcess } from '../support/server/server-process.ts'
import { SECRETS } from '../support/server/test-server.ts'
import { untilSlow as until } from '../support/time/until.ts'
import { answerJson, type ScriptedUpstream } from '../support/upstream/scripted-upstream.ts'

const skip = enterNamespaces()

const OPS_TOKEN = 'o'.repeat(40)
const NEXT_SECRETS = `${'n'.repeat(40)},${SECRETS}`
const COMMON = { DRAIN_WAIT_SECONDS: '3', OPS_TOKEN, UPSTREAM_BUDGET: '100000/60' }

/** What an operator tells an instance. */
async function tell({ host, opsPort }: ServerProcess, control: string, value?: object): Promise<number> {
  const response = await fetch(`http://${host}:${opsPort}/controls/${control}`, {
    method: value === undefined ? 'DELETE' : 'PUT',
    headers: { authorization: `Bearer ${OPS_TOKEN}` },
    ...(value !== undefined && { body: JSON.stringify(value) }),
  })
  await response.arrayBuffer()
  return response.status
}

const readiness = async ({ host, opsPort }: ServerProcess): Promise<number> =>
  (await fetch(`http://${host}:${opsPort}/readyz`)).status

/** What a page of this browser gets from one instance. @param order its body and Idempotency-Key */
async function ask({ host, port }: ServerProcess, browser: JarBrowser, path: string, order?: string) {
  const page = new URL(PUBLIC_URL)
  const headers = { cookie: browser.cookieHeader(page, page), 'x-csrf': '1', 'x-forwarded-proto': 'https' }
  const response = await fetch(`http://${host}:${port}${path}`, {
    headers,
    ...(order !== undefined && { method: 'POST', headers: { ...headers, 'idempotency-key': order }, body: order }),
  })
  const isReplay = response.headers.get('idempotency-replayed') === 'true'
  return { status: response.status, isReplay, json: (await response.json()) as Record<string, unknown> }
}

const session = async (browser: JarBrowser) => (await browser.fetch('/auth/session')).json() as Promise<object>

const pausedAt = async (instance: ServerProcess, browser: JarBrowser): Promise<boolean> =>
  (await ask(instance, browser, '/api/payment-agents/v1/transfer', randomUUID())).json['code'] === 'orders_paused'

/** Makes upstream hold the calls that open accounts. @returns the answers that it owes, by the body */
function slowOrders(upstream: ScriptedUpstream): Map<string, (() => void)[]> {
  const owed = new Map<string, (() => void)[]>()
  const { onRest } = upstream
  upstream.onRest = (request, response) => {
    if (request.method !== 'POST' || request.url !== '/trading/v1/options/accounts') return onRest(request, response)
    void text(request).then((id) =>
      owed.set(id, [...(owed.get(id) ?? []), () => answerJson(response, 200, { data: [] })]),
    )
  }
  return owed
}

/** A login, or the sign-up of a partner's link, whose user is at the provider. */
interface Begun {
  readonly browser: JarBrowser
  readonly form: Arrival
  readonly name: string
}

async function begin(name: string, isSignUp: boolean): Promise<Begun> {
  const browser = new JarBrowser()
  const link = `/auth/signup?sidc=${randomUUID()}&utm_source=partner&utm_medium=affiliate&utm_campaign=${name}`
  return { browser, name, form: await browser.navigate(`${PUBLIC_URL}${isSignUp ? link : '/auth/login'}`) }
}

await test(
  'Rolls to this version and back lose nothing, double nothing, and leave pauses in force',
  { skip },
  async (t) => {
    const previous = await previousVersion()
    if (previous === undefined) throw new Error('git does not have version 0.3')
    const old = { main: join(previous, 'src/main.ts'), log: '/dev/null' }
    const world = await deployment(t, COMMON, [{}, {}, {}], undefined, old)
    const users = await Promise.all(
      Array.from({ length: 4 }, async (_, index) => {
        const browser = new JarBrowser()
        await logIn(browser, PUBLIC_URL, `user${index}@example.test`)
        return browser
      }),
    )
    const [first] = users
    if (first === undefined) throw new Error('no user')
    const tags = await Promise.all(users.map(async (each) => Object(await session(each)).session as unknown))
    const lines = users.map((browser) => new Lines(t, browser))
    await Promise.all(lines.map((each) => each.untilAllReceive()))
    // Without its session socket, the page would ask every five minutes.
    const { session: page } = pageClient(t, first, PUBLIC_URL, PUBLIC_URL)
    t.teardown(page.subscribe(() => undefined))
    const pageReads = (message?: string): Promise<void> => until(() => page.get().notice?.message === message)
    const callers: Caller[] = []
    const owed = slowOrders(world.upstream)
    let instances = [...world.instances]
    let signUps = 0

    /** Replaces all instances. The first new one and the old ones obey each other; the rest comes under load. */
    const roll = async (name: string, settings: Record<string, string>, options?: typeof old): Promise<void> => {
      const [told, ...others] = instances
      if (told === undefined) throw new Error('no instance')
      t.equal(await tell(told, 'orders', { paused: true, message: name }), 200)
      t.equal(await tell(told, 'notice', { message: name }), 200)
      await until(async () => (await Promise.all(instances.map((each) => pausedAt(each, first)))).every(Boolean))
      await pageReads(name)
      const begun = await Promise.all([begin(`${name}-login`, false), begin(`${name}-signup`, true)])
      const fresh = [await world.start(settings, options)]
      const [pioneer] = fresh
      if (pioneer === undefined) throw new Error('no new instance')
      t.ok(await pausedAt(pioneer, first), `${name}: orders are paused at the first new instance`)
      t.match((await ask(pioneer, first, '/auth/session')).json, { authenticated: true, notice: { message: name } })
      t.equal(await tell(pioneer, 'orders'), 200)
      t.equal(await tell(pioneer, 'notice'), 200)
      await until(async () => !(await Promise.all(instances.map((each) => pausedAt(each, first)))).some(Boolean))
      await pageReads()

      const load = users.flatMap((browser, user) => [
        new Caller(`${name}-${user}`, browser),
        new Caller(`${name}-${user}-keyed`, browser, true),
      ])
      callers.push(...load)
      await until(() => hasServed(pioneer))
      const slow = `${name}-slow`
      const order = (instance: ServerProcess) => ask(instance, first, '/api/trading/v1/options/accounts', slow)
      const sent = order(told)
      await until(() => owed.has(slow))
      t.match(await order(pioneer), { status: 409, json: { code: 'idempotency_in_progress' } })
      for (const [index, instance] of [told, ...others].entries()) {
        if (index > 0) {
          const next = await world.start(settings, options)
          fresh.push(next)
          await until(() => hasServed(next))
        }
        instance.child.kill('SIGTERM')
        if (index === 0) {
          await until(async () => (await readiness(instance)) === 503)
          t.match(await order(pioneer), { status: 409, json: { code: 'idempotency_in_progress' } })
          for (const answer of owed.get(slow) ?? []) answer()
          t.match(await sent, { status: 200, isReplay: false }, `${name}: a draining instance waits for its order`)
          t.match(
            await order(pioneer),
            { status: 200, isReplay: true },
            `${name}: the other version repeats its answer`,
          )
        }
        t.equal(await instance.exited, 0, `${name}: instance ${index} has drained`)
      }
      instances = fresh
      await Promise.all(lines.map((each) => each.untilAllReceive()))
      await Promise.all(load.map((each) => each.stop()))
      for (const { browser, form, name: whose } of begun) {
        // Whoever logs in has an account at the provider.
        const email = whose.endsWith('signup') ? `${whose}@example.test` : 'demo@example.test'
        const { url } = await browser.submit(form, { email, password: 'any', action: 'continue' })
        t.equal(url.origin, PUBLIC_URL, url.href)
        t.match(await session(browser), { authenticated: true }, `${whose} is finished by the other version`)
        users.push(browser)
        if (whose.endsWith('signup')) {
          signUps++
          const atProvider = form.hops.find(({ url: { origin } }) => origin !== PUBLIC_URL)
          t.equal(atProvider?.url.searchParams.get('utm_campaign'), whose, 'the provider learns of the partner')
          t.same(browser.named('__Host-attribution'), [], 'and the sign-up is completed')
        }
      }
    }

    await roll('up', { SESSION_SECRETS: `${SECRETS},${NEXT_SECRETS.split(',')[0]}` })
    await roll('rotated', { SESSION_SECRETS: NEXT_SECRETS })
    await roll('back', { SESSION_SECRETS: NEXT_SECRETS }, old)

    t.equal(signUps, 3)
    t.same(
      [...owed.values()].map((answers) => answers.length),
      [1, 1, 1],
      'each slow order was executed once',
    )
    for (const [index, tag] of tags.entries()) {
      t.match(await session(users[index] as JarBrowser), { authenticated: true, session: tag }, `user ${index}`)
    }
    for (const browser of users) t.match(await session(browser), { authenticated: true })
    const results = callers.flatMap((each) => each.results)
    const repeated = callers.flatMap((each) => each.repeated)
    t.same(
      results.filter(({ status }) => status !== 200),
      [],
      `all ${results.length} calls succeed`,
    )
    t.same(
      repeated.filter(({ status, isReplay }) => status !== 200 || !isReplay),
      [],
      `all ${repeated.length} repetitions are answered from the record`,
    )
    const counts = Map.groupBy(world.executed, (id) => id)
    for (const { id } of results)
      if (counts.get(id)?.length !== 1) t.fail(`${id} was executed ${counts.get(id)?.length} times`)
    t.same(
      lines.flatMap((each) => each.ended),
      [],
      'every socket has come back',
    )
    t.same(new Set(lines.flatMap((each) => each.closed)), new Set([1012]))
    for (const each of lines) each.stop()
  },
)
