import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import type { Arrival } from '../support/browser/jar-browser.ts'
import { OPS_TOKEN } from '../support/login/identity.ts'
import { epoch, oidcWorld, sign, type OidcWorld } from '../support/login/oidc-world.ts'
import { json, tokens, type Behaviour, type StartedLogin } from '../support/login/token-endpoint.ts'
import { CLIENT_ID, type TestServer } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'
import { answerJson, ScriptedUpstream } from '../support/upstream/scripted-upstream.ts'
import { ACCOUNTS, type Answer, type User } from '../support/user.ts'
import type { Bystander } from './bystanders.ts'
import { Calls } from './calls.ts'
import { single, workers, type House, type Instance, type StartHouse } from './houses.ts'
import { storedIn, type Stored } from './stored.ts'

/** The tokens that the provider has granted one login. */
interface Granted {
  readonly code: string
  readonly nonce: string | null
  readonly sub: string
  readonly sid: string
  /** All of them, the newest last. */
  readonly access: string[]
  readonly refresh: string[]
  /** How often it was asked with what it had replaced already. */
  reuses: number
}

/** A user with a browser, and what became of their logins. */
export interface Actor extends User {
  readonly sub: string
  readonly granted: Granted[]
}

/** Two instances, the first of which reaches Redis through a proxy, and what provider and upstream know. */
export interface Scene extends Pick<House, 'proxy' | 'masters'> {
  readonly world: OidcWorld
  /** Those to provider and upstream. */
  readonly calls: Calls
  readonly upstream: ScriptedUpstream
  readonly servers: readonly [faulty: Instance, other: Instance]
  /** Who is there all the time, if anybody is. */
  bystanders: readonly Bystander[]
  /** The Idempotency-Keys of the orders that upstream has executed; of one without, its token. */
  readonly orders: string[]
  /** Tokens that upstream refuses. */
  readonly refused: Set<string>
  /** What must not be, as far as it was seen. */
  readonly problems: string[]
  readonly actors: Actor[]
  /** Whether a failure may be told. */
  isTrue: (told: string) => boolean
  /** Forgets what was before. */
  readonly reset: () => Promise<void>
  /** One more instance, until then. */
  readonly instance: () => Promise<TestServer>
  /** The lines of the log since then. */
  readonly lines: () => TestServer['log']
  readonly visitor: (sub?: string, at?: Instance) => Actor
  /** @param expiresIn of the token (s) */
  readonly user: (sub?: string, expiresIn?: number) => Promise<Actor>
  /** The provider grants a login that has been started. */
  readonly finish: (actor: Actor, login: StartedLogin, expiresIn?: number) => Promise<Arrival>
  readonly operate: (method: string, path: string, body?: unknown) => Promise<number>
  readonly expect: (holds: boolean, what: string) => void
  /** The same of what becomes so. */
  readonly soon: (check: () => boolean | Promise<boolean>, what: string) => Promise<void>
  readonly isAlive: (actor: Actor) => Promise<void>
  /** @param cookie that the actor had */
  readonly isDead: (actor: Actor, cookie: string) => Promise<void>
  readonly areRevoked: (actor: Pick<Actor, 'granted'>) => Promise<void>
  /** Asks again whether what has been dead is so. */
  readonly areStillDead: () => Promise<void>
  readonly stored: Stored
  /** The sessions that are no bystander's. */
  readonly sessionKeys: () => Promise<string[]>
}

/** Starts one that ends with the test. */
export async function startScene(
  t: Test,
  more: Readonly<Record<string, string>> = {},
  startHouse: StartHouse = single,
): Promise<Scene> {
  const house = await startHouse(t)
  const { masters, hasWorkers = false } = house
  const [faulty, direct] = house.urls
  const upstream = await ScriptedUpstream.start(t)
  const settings = {
    API_URL: `http://${upstream.host}`,
    WS_URL: `ws://${upstream.host}`,
    REDIS_URL: hasWorkers ? direct : faulty,
    OPS_TOKEN,
    AUTH_STARTS_PER_MINUTE: '100000',
    API_REQUESTS_PER_MINUTE: '100000',
    ...house.settings,
    ...more,
  }
  const port = String(await freePort())
  const world = await oidcWorld(t, {
    settings: hasWorkers ? { ...settings, PUBLIC_URL: `http://localhost:${port}` } : settings,
  })
  const { provider } = world
  // A process discovers it at its start.
  const endpoints = {
    authorization_endpoint: `${provider.url}/oauth2/auth`,
    token_endpoint: `${provider.url}/oauth2/token`,
  }
  provider.page = JSON.stringify({ issuer: provider.url, ...endpoints })
  const server = hasWorkers ? await workers(t, { ...world.settings, PORT: port, REDIS_URL: faulty }) : world.server
  const other = hasWorkers ? world.server : await world.instance({ REDIS_URL: direct })
  const stored = await storedIn(t, masters)
  const granted: Granted[] = []
  const expiries = new Map<string, number>()
  const [orders, refused, problems]: [string[], Set<string>, string[]] = [[], new Set(), []]
  const actors: Actor[] = []
  const calls = new Calls()
  /** Whose the one-time URLs are that nobody has used. */
  const subjects = new Map<string, string | undefined>()
  /** The login of a code or a token. */
  const loginOf = (secret = ''): Granted | undefined =>
    granted.find(({ code, access, refresh }) => [code, ...access, ...refresh].includes(secret))
  const callerOf = ({ headers }: IncomingMessage): string | undefined => loginOf(headers.authorization?.slice(7))?.sub

  const grant: Behaviour = async (request, response, form) => {
    const [code, token] = [form.get('code'), form.get('refresh_token') ?? '']
    const login = loginOf(code ?? token)
    if (login === undefined || login.reuses > 0) return json({ error: 'invalid_grant' }, 400)(request, response, form)
    const isUsed = code === null ? login.refresh.at(-1) !== token : login.access.length > 0
    if (isUsed) {
      login.reuses++
      // A refresh whose response was lost is tried again.
      if (code !== null || calls.hit !== 'tokens')
        problems.push(`a ${code === null ? 'refresh token' : 'code'} was used again`)
      return json({ error: 'invalid_grant' }, 400)(request, response, form)
    }
    login.access.push(`at-${randomUUID()}`)
    login.refresh.push(`rt-${randomUUID()}`)
    const claims = { iss: world.issuer, aud: CLIENT_ID, sub: login.sub, sid: login.sid, iat: epoch(), exp: epoch(300) }
    const idToken = code === null ? undefined : await sign(world.key, { ...claims, nonce: login.nonce })
    const expiresIn = code === null ? 3600 : expiries.get(code)
    const other = { access_token: login.access.at(-1), refresh_token: login.refresh.at(-1), id_token: idToken }
    return tokens({ ...other, expires_in: expiresIn })(request, response, form)
  }
  provider.behaviour = (request, response, form) =>
    calls.serve('tokens', loginOf(form.get('code') ?? form.get('refresh_token') ?? '')?.sub, response, () =>
      grant(request, response, form),
    )
  const revoke = provider.onRevocation
  provider.onRevocation = (request, response, form) =>
    calls.serve('revocation', loginOf(form.get('token') ?? '')?.sub, response, () => revoke(request, response, form))
  const keys = world.keys.responses['/jwks']
  world.keys.responses['/jwks'] = (request, response) =>
    calls.serve('keys', undefined, response, () => keys?.(request, response))
  const serve: ScriptedUpstream['onRest'] = (request, response) => {
    const token = request.headers.authorization?.slice('Bearer '.length) ?? ''
    if (refused.has(token) || provider.revoked.includes(token)) return answerJson(response, 401, {})
    if (request.method === 'POST') orders.push(String(request.headers['idempotency-key'] ?? token))
    answerJson(response, 200, { data: [] })
  }
  upstream.onRest = (request, response) =>
    void calls.serve('REST', callerOf(request), response, () => serve(request, response))
  upstream.onIdentity = (request, response) =>
    calls.serve('identity', callerOf(request), response, () =>
      answerJson(response, 200, { data: { id: callerOf(request) } }),
    )
  upstream.onOtp = (request, response) => {
    const url = upstream.otpUrl()
    subjects.set(new URL(url).search, callerOf(request))
    calls.serve('OTP', callerOf(request), response, () => answerJson(response, 200, { data: { url } }))
  }
  upstream.onUpgrade = (request, socket, head) => {
    const password = new URL(request.url ?? '', 'ws://upstream').search
    const sub = subjects.get(password)
    if (password !== '' && !subjects.delete(password)) problems.push('a one-time URL was used again')
    calls.open(sub, socket, () => upstream.accept(request, socket, head))
  }
  upstream.onSocket = (socket) => socket.on('message', (message) => socket.send(message))

  const soon: Scene['soon'] = (check, what) => until(check, what).catch(() => void problems.push(what))
  const instances: TestServer[] = []
  let from = 0
  let dead: { readonly actor: Actor; readonly cookie: string }[] = []
  const call = ({ actor, cookie }: (typeof dead)[number], at: Instance): Promise<Answer> =>
    actor.call('GET', ACCOUNTS, { at, headers: { cookie } })
  const scene: Scene = {
    ...house,
    world,
    bystanders: [],
    calls,
    upstream,
    servers: [server, other],
    orders,
    refused,
    problems,
    actors,
    isTrue: (told) => /^(try_later|1013 .*|503 ($|.*(session_store_unavailable|credential_renewed).*))$/s.test(told),
    async reset() {
      await Promise.all(instances.splice(0).map((each) => each.close()))
      problems.length = actors.length = 0
      dead = []
      from = Date.now()
    },
    async instance() {
      const at = await world.instance()
      instances.push(at)
      return at
    },
    // Those of workers may come late.
    lines: () =>
      [...scene.servers, ...instances].flatMap(({ log }) => log.filter(({ time }) => Date.parse(String(time)) >= from)),
    soon,
    visitor(sub = randomUUID(), at) {
      const actor = Object.assign(world.visitor(undefined, at ?? server), { sub, granted: [] })
      actors.push(actor)
      return actor
    },
    async user(sub, expiresIn) {
      const actor = scene.visitor(sub)
      const logsIn = async (): Promise<boolean> => {
        actor.granted.length = 0
        const login = await actor.startLogin()
        return login.state !== '' && (await scene.finish(actor, login, expiresIn)).url.search === ''
      }
      await until(logsIn, 'a user logs in, once all masters are connected again')
      return actor
    },
    finish(actor, { authorize, finish }, expiresIn = 3600) {
      const [code, sid] = [randomUUID(), randomUUID()]
      const nonce = authorize.searchParams.get('nonce')
      const login = { code, nonce, sub: actor.sub, sid, access: [], refresh: [], reuses: 0 }
      for (const each of [granted, actor.granted]) each.push(login)
      expiries.set(code, expiresIn)
      return finish({ code })
    },
    async operate(method, path, body) {
      const init = { method, headers: { authorization: `Bearer ${OPS_TOKEN}` } }
      const response = await fetch(server.opsUrl + path, {
        ...init,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      await response.arrayBuffer()
      return response.status
    },
    expect: (holds, what) => void (holds || problems.push(what)),
    async isAlive(actor) {
      for (const at of scene.servers)
        await soon(
          async () => (await actor.call('GET', ACCOUNTS, { at })).status === 200,
          `calls succeed at ${at.port}`,
        )
    },
    async isDead(actor, cookie) {
      for (const at of scene.servers) {
        // Each worker is asked.
        const ask = () => Promise.all([1, 2, 3].map(() => call({ actor, cookie }, at)))
        const isRefused = async (): Promise<boolean> => (await ask()).every(({ status }) => status === 401)
        await soon(isRefused, `calls with an ended session are refused at ${at.port}`)
      }
      dead.push({ actor, cookie })
    },
    async areStillDead() {
      for (const at of scene.servers)
        for (const each of dead)
          scene.expect((await call(each, at)).status === 401, `an ended session is back at ${at.port}`)
    },
    areRevoked: ({ granted: logins }) =>
      soon(() => {
        const tokens = logins.flatMap(({ access, refresh }) => [...access.slice(-1), ...refresh.slice(-1)])
        const left = tokens.filter((token) => !provider.revoked.includes(token)).length
        const failed = scene.lines().filter(({ audit }) => audit === 'revocation_failed').length
        return left <= failed && (failed === 0 || calls.hit === 'revocation')
      }, 'the tokens are revoked, or the log says which one is not'),
    stored,
    async sessionKeys() {
      const known = new Set(scene.bystanders.map(({ sessionKey }) => sessionKey))
      return (await stored.sessions()).map(([key]) => key).filter((key) => !known.has(key))
    },
  }
  return scene
}
