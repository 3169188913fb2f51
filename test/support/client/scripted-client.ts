import type { Test } from 'tap'
import type { Client } from '../../../client/dist/client.js'
import { clientOf } from './client-of.ts'
import { PROBLEM, problemBody } from './own-problem.ts'

/**
 * What happens to a call: it gets this problem, or without a code this response of the trading service; or its connection
 * is cut before the response, or in its body; or a proxy in front of the server refuses it, or leads it to a page of its own.
 */
export type Event =
  | 'cut'
  | 'cut in the body'
  | 'refused by a proxy'
  | 'redirected by a proxy'
  | readonly [status: number, code: string, retryAfter?: string]

/** A call that has arrived. */
interface SeenCall {
  readonly method: string | undefined
  readonly key: string | undefined
  readonly csrf: string | undefined
}

const HTML = { 'content-type': 'text/html' }
const PROXY_LOGIN = '/proxy/login'
const SESSION = { authenticated: true, now: 1, expires_at: 3601, idle_expires_at: 601, scope: 'trade', session: 's' }

/** A client whose server lets these things happen to its calls, one after the other, and then responds with 200. */
export async function scriptedClient(
  t: Test,
  ...script: readonly Event[]
): Promise<{ client: Client; calls: SeenCall[] }> {
  const left = [...script]
  const calls: SeenCall[] = []
  const client = await clientOf(t, ({ method, headers, url }, response) => {
    if (url === '/auth/session') return void response.end(JSON.stringify(SESSION))
    if (url === PROXY_LOGIN) return void response.writeHead(200, HTML).end('<form>')
    const [key, csrf] = [headers['idempotency-key'], headers['x-csrf']] as (string | undefined)[]
    calls.push({ method, key, csrf })
    const next = left.shift() ?? [200, '']
    if (next === 'cut') return void response.destroy()
    if (next === 'refused by a proxy') return void response.writeHead(403, HTML).end('<h1>Forbidden</h1>')
    if (next === 'redirected by a proxy') return void response.writeHead(302, { location: PROXY_LOGIN }).end()
    response.setHeader('x-request-id', 'own')
    if (next === 'cut in the body') {
      response.writeHead(200, { 'content-length': '10' })
      return void response.write('{"a"', () => response.destroy())
    }
    const [status, code, retryAfter] = next
    const outcome = code === 'outcome_unknown' ? 'unknown' : undefined
    if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter)
    if (code === '') response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
    else response.writeHead(status, PROBLEM).end(problemBody(code, { status, outcome }))
  })
  return { client, calls }
}
