import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { JarBrowser, type Arrival } from '../../support/browser/jar-browser.ts'
import { newClientKey } from '../../support/login/client-keys.ts'
import { document, metadataServer } from '../../support/login/metadata-server.ts'
import { EVENTS, epoch, issuerKey, sign } from '../../support/login/oidc-world.ts'
import { json, tokenEndpoint, tokens, type TokenEndpoint } from '../../support/login/token-endpoint.ts'
import { testMasters } from '../../support/redis/topologies.ts'
import { CLIENT_ID, SECRETS, type TestServer } from '../../support/server/test-server.ts'
import { Collector } from '../../support/telemetry/collector.ts'
import { reply, type Message } from '../../support/feed/world.ts'
import { answerJson, type SeenRequest } from '../../support/upstream/scripted-upstream.ts'
import { startWorld, type World } from '../../support/world.ts'
import type { User } from '../../support/user.ts'
import type { Options } from './dimensions.ts'

/** Where the frontend is that needs no server of its own. */
const UNVISITED = 'http://localhost:9'

/** What the provider has granted a login. */
interface Granted {
  readonly name: string
  readonly sid: string
  readonly access: string[]
  readonly refresh: string[]
}

/** A login that waits at the provider. */
interface Waiting {
  /** What the browser, or the pushed request, has told the provider. */
  readonly asked: URLSearchParams
  readonly arrival: Arrival
  /** @param at the instance to which the provider sends the browser back */
  readonly finish: (at?: Pick<TestServer, 'url'>) => Promise<Arrival>
}

/** Somebody with a browser and a name. */
export interface Person extends User {
  readonly name: string
  readonly start: (path?: string) => Promise<Waiting>
}

/** Servers with the settings of a row, and peers that know what those settings mean for them. */
export interface RowWorld extends Pick<
  World<'scripted', TokenEndpoint>,
  'servers' | 'redis' | 'storeClient' | 'provider' | 'upstream'
> {
  readonly settings: Options
  readonly collector: Collector
  readonly person: (name: string) => Person
  /** Who lives through most of it. */
  ann: Person
  readonly granted: readonly Granted[]
  /** The orders that upstream has executed: their keys, or `none`. */
  readonly executed: string[]
  /** The REST requests that upstream has got. */
  readonly seen: readonly SeenRequest[]
  /** Tokens that upstream refuses. */
  readonly refused: Set<string>
  readonly logoutToken: (name: string) => Promise<string>
  /** What peers have seen that must not be. */
  readonly problems: string[]
}

/**
 * Starts one that ends with the test.
 * @param row its settings, before addresses are filled in
 * @param other those of a second instance
 */
export async function rowWorld(t: Test, row: Options, other?: Options): Promise<RowWorld> {
  const [provider, keys, collector] = [await tokenEndpoint(t), await metadataServer(t), await Collector.start(t)]
  const [key, pair] = [issuerKey('first'), newClientKey('P-256')]
  keys.responses['/jwks'] = document({ keys: [key.jwk] })
  const folder = t.testdir({ secrets: SECRETS, pages: { 'index.html': '<title>Our page</title>', 'app.js': '1' } })
  const port = await freePort()
  const places: Readonly<Record<string, string>> = {
    public: `http://localhost:${port}`,
    frontend: UNVISITED,
    provider: provider.url,
    keys: keys.url,
    collector: collector.url,
    key: pair.pem,
    secrets: join(folder, 'secrets'),
    pages: join(folder, 'pages'),
  }
  const fill = (options: Options): Record<string, string> =>
    Object.fromEntries(
      Object.entries(options).map(([name, text]) => [
        name,
        text.replaceAll(/\{(\w+)\}/g, (whole, place: string) => places[place] ?? whole),
      ]),
    )
  const { redis, instances = '1', refresh, lifetime, ...settings } = fill(row)
  const given = Object.fromEntries(Object.entries(settings).filter(([, text]) => text !== ''))
  const problems: string[] = []
  const granted: Granted[] = []
  const executed: string[] = []
  const seen: SeenRequest[] = []
  const refused = new Set<string>()
  const codes = new Map<string, { readonly name: string; readonly asked: URLSearchParams }>()
  const pushed = new Map<string, URLSearchParams>()
  const grantOf = (token: string): Granted | undefined =>
    granted.find(({ access, refresh: all }) => access.includes(token) || all.includes(token))

  provider.behaviour = async (request, response, form) => {
    const credentials = credentialsIn(request.headers.authorization, form)
    if (credentials !== expectedCredentials(given)) problems.push(`the client authenticates with ${credentials}`)
    if (form.has('response_type')) {
      const uri = `urn:ietf:params:oauth:request_uri:${randomUUID()}`
      pushed.set(uri, form)
      return json({ request_uri: uri, expires_in: 60 }, 201)(request, response, form)
    }
    const login = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const sid = randomUUID()
    const grant = login ? { name: login.name, sid, access: [], refresh: [] } : grantOf(form.get('refresh_token') ?? '')
    if (grant === undefined) return json({ error: 'invalid_grant' }, 400)(request, response, form)
    if (login) granted.push(grant)
    grant.access.push(`at-${randomUUID()}`)
    if (refresh !== undefined) grant.refresh.push(`rt-${randomUUID()}`)
    const claims = { iss: provider.url, aud: CLIENT_ID, sub: grant.name, iat: epoch(), exp: epoch(300) }
    const own = { nonce: login?.asked.get('nonce'), sid: grant.sid, name: `${grant.name} the user` }
    const idToken = login && given['OIDC'] ? await sign(key, { ...claims, ...own }) : undefined
    const unknown = lifetime !== undefined && { expires_in: undefined }
    const all = { access_token: grant.access.at(-1), refresh_token: grant.refresh.at(-1), id_token: idToken }
    return tokens({ ...all, ...unknown })(request, response, form)
  }

  const world = await startWorld(t, {
    provider: async () => ({
      provider,
      settings: { AUTH_URL: provider.url },
      logIn: async () => Promise.reject(new Error('a person starts a login')),
    }),
    upstream: 'scripted',
    port,
    redis: redis === 'one',
    instances: Number(instances),
    settings: { ...given, ...(redis === 'cluster' && (await cluster(t))) },
  })
  const { upstream } = world
  const servers = other === undefined ? world.servers : [world.server, await world.instance(unlike(given, fill(other)))]
  upstream.onRest = (request, response) => {
    const { url = '', headers, method } = request
    seen.push({ url, headers })
    const token = headers.authorization?.slice('Bearer '.length) ?? ''
    const isOpen = url === '/v1/health'
    if (!isOpen && (refused.has(token) || grantOf(token) === undefined)) return answerJson(response, 401, {})
    if (method !== 'GET') executed.push(String(headers['idempotency-key'] ?? 'none'))
    answerJson(response, 200, { data: [url] })
  }
  upstream.onIdentity = ({ headers }, response) =>
    answerJson(response, 200, { data: { id: grantOf(headers.authorization?.slice(7) ?? '')?.name } })
  upstream.onOtp = (_request, response) => {
    const url = upstream.otpUrl()
    const data = given['OTP_URL_POINTER'] === undefined ? { url } : { url: 'wss://other.example/', links: [url] }
    answerJson(response, 200, { data })
  }
  upstream.onSocket = (socket) =>
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      const message = isBinary ? undefined : messageIn(data.toString())
      if (message === undefined || !('req_id' in message)) return void socket.send(data, { binary: isBinary })
      const request = { message, text: data.toString(), socket, isTaken: true }
      reply(request, answerTo(message))
    })

  const person = (name: string): Person => {
    const user = world.visitor(new JarBrowser(UNVISITED))
    return Object.assign(user, {
      name,
      async start(path = '/auth/login') {
        const arrival = await user.browser.navigate(new URL(path, world.server.url).href, { from: 'address bar' })
        const shown = arrival.url.searchParams
        const asked = pushed.get(shown.get('request_uri') ?? '') ?? shown
        const code = randomUUID()
        codes.set(code, { name, asked })
        const query = new URLSearchParams({ code, state: asked.get('state') ?? '' })
        if (given['ISSUER_REQUIRED'] ?? other?.['ISSUER_REQUIRED']) query.set('iss', provider.url)
        const finish: Waiting['finish'] = ({ url } = world.server) =>
          user.browser.navigate(`${url}/auth/callback?${query.toString()}`, { from: new URL(provider.url) })
        return { asked, arrival, finish }
      },
    })
  }
  const logoutToken = (name: string): Promise<string> => {
    const claims = { iss: provider.url, aud: CLIENT_ID, iat: epoch(), jti: randomUUID(), events: EVENTS, sub: name }
    return sign(key, claims, { typ: 'logout+jwt' })
  }
  const seenBy = { granted, executed, seen, refused, problems, collector }
  return { ...world, ...seenBy, servers, settings: given, person, ann: person('ann'), logoutToken }
}

/** The settings that make an instance unlike another. An empty one is unset. */
const unlike = (settings: Options, others: Options): Record<string, string> => ({
  ...Object.fromEntries(Object.keys(settings).map((name) => [name, ''])),
  ...others,
})

/** A Cluster of three masters without replicas, which confirm nothing. */
async function cluster(t: Test): Promise<Options> {
  const [first] = await testMasters(t, 3)
  return { REDIS_URL: first?.url.replace('redis://', 'redis+cluster://') ?? '', IDEMPOTENCY_REPLICAS: '0' }
}

/** How a client has authenticated. */
function credentialsIn(authorization: string | undefined, form: URLSearchParams): string {
  if (authorization?.startsWith('Basic ')) return 'client_secret_basic'
  if (form.has('client_secret')) return 'client_secret_post'
  return form.has('client_assertion') ? 'private_key_jwt' : 'none'
}

function expectedCredentials({ CLIENT_AUTH, CLIENT_SECRET, CLIENT_KEY }: Options): string {
  if (CLIENT_KEY !== undefined) return 'private_key_jwt'
  return CLIENT_AUTH ?? (CLIENT_SECRET === undefined ? 'none' : 'client_secret_post')
}

function messageIn(text: string): Message | undefined {
  try {
    return JSON.parse(text) as Message
  } catch {
    return undefined
  }
}

function answerTo(message: Message): Message {
  const { ticks } = message
  if (typeof ticks !== 'string') return { msg_type: Object.keys(message)[0], answered: true }
  const id = `id-${ticks}`
  return { msg_type: 'tick', subscription: { id }, tick: { epoch: 1, id, quote: 1.5, symbol: ticks } }
}
