import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import { pino } from 'pino'
import { createClient } from 'redis'
import { Pool } from 'undici'

/**
 * A minimal login for comparison: node:http, the code flow with PKCE, and tokens in Redis as they come. It checks the state and
 * nothing else, has no limits, and logs one line per request. `/api` only says whether there is a session.
 * `PORT=… PUBLIC_URL=… AUTH_URL=… CLIENT_ID=… REDIS_URL=… node login.ts`
 */

const { PORT, PUBLIC_URL = '', AUTH_URL = '', CLIENT_ID = '', REDIS_URL = '' } = process.env
const log = pino({ base: null })
const redis = await createClient({ url: REDIS_URL }).connect()
const provider = new Pool(AUTH_URL)
const redirectUri = `${PUBLIC_URL}/auth/callback`
const random = (): string => randomBytes(32).toString('base64url')

/** A status, and the value of a header or a body. */
type Reply = readonly [status: number, headers: Readonly<Record<string, string>>, body?: string]

const routes: Readonly<Record<string, (request: IncomingMessage, query: URLSearchParams) => Promise<Reply>>> = {
  async '/auth/login'() {
    const [state, verifier] = [random(), random()]
    await redis.set(`bare:login:${state}`, verifier, { EX: 3600 })
    const parameters = new URLSearchParams({
      response_type: 'code',
      client_id: CLIENT_ID,
      redirect_uri: redirectUri,
      scope: 'trade account_manage',
      state,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    })
    return [303, { location: `${AUTH_URL}/oauth2/auth?${parameters.toString()}`, 'set-cookie': cookie('state', state) }]
  },
  async '/auth/callback'(request, query) {
    const state = query.get('state')
    const verifier = state === cookieOf(request, 'state') ? await redis.getDel(`bare:login:${state}`) : null
    if (verifier === null) return [400, {}]
    const form = { grant_type: 'authorization_code', code: query.get('code') ?? '', redirect_uri: redirectUri }
    const { statusCode, body } = await provider.request({
      method: 'POST',
      path: '/oauth2/token',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ ...form, client_id: CLIENT_ID, code_verifier: verifier }).toString(),
    })
    const tokens = await body.text()
    if (statusCode !== 200) return [502, {}]
    const id = random()
    await redis.set(`bare:session:${id}`, tokens, { EX: 1800 })
    return [303, { location: '/', 'set-cookie': cookie('session', id) }]
  },
  async '/auth/logout'(request) {
    await redis.del(`bare:session:${cookieOf(request, 'session')}`)
    return [204, { 'set-cookie': `${cookie('session', '')}; Max-Age=0` }]
  },
  async '/api/trading/v1/options/accounts'(request) {
    const tokens = await redis.get(`bare:session:${cookieOf(request, 'session')}`)
    return tokens === null ? [401, {}] : [200, { 'content-type': 'application/json' }, '{"data":[]}']
  },
}

createServer((request, response) => {
  const startedAt = performance.now()
  const { pathname, searchParams } = new URL(request.url ?? '', PUBLIC_URL)
  response.once('finish', () => {
    const { method } = request
    log.info({ method, path: pathname, status: response.statusCode, ms: performance.now() - startedAt }, 'request')
  })
  const reply = routes[pathname]?.(request, searchParams) ?? Promise.resolve<Reply>([404, {}])
  void reply.then(([status, headers, body]) => response.writeHead(status, headers).end(body))
}).listen(Number(PORT), '127.0.0.1')

function cookie(name: string, value: string): string {
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax`
}

function cookieOf({ headers }: IncomingMessage, name: string): string | undefined {
  return headers.cookie
    ?.split('; ')
    .find((pair) => pair.startsWith(`${name}=`))
    ?.slice(name.length + 1)
}
