import { http, HttpResponse } from 'msw/http'
import { ws } from 'msw/ws'
import type { ProblemCode } from 'trading-bff-client'

/** What the server knows. Tests change it, and make a new one with `reset()`. */
export const server = { isLoggedIn: true, losesNextAnswer: false, transfers: 0 }
/** What calls with an Idempotency-Key were, and their answers. */
const calls = new Map<string, { sent: string; answer: object }>()

export function reset(): void {
  Object.assign(server, { isLoggedIn: true, losesNextAnswer: false, transfers: 0 })
  calls.clear()
}

/** Without an X-Request-Id the package takes a response for that of a proxy, and an order is not known to be refused. */
function respond(status: number, body: object, headers: Record<string, string> = {}) {
  return HttpResponse.json(body, { status, headers: { 'X-Request-Id': crypto.randomUUID(), ...headers } })
}

/** A problem of the server. */
export function problem(status: number, code: ProblemCode, more: object = {}) {
  const id = crypto.randomUUID()
  const body = { type: `/problems/${code}`, title: code, status, detail: code, code, request_id: id, ...more }
  return respond(status, body, { 'Content-Type': 'application/problem+json', 'X-Request-Id': id })
}

function session() {
  const now = Math.floor(Date.now() / 1000)
  const active = { session: 'tag', scope: 'trade', expires_at: now + 3600, idle_expires_at: now + 1800 }
  return { authenticated: server.isLoggedIn, now, ...(server.isLoggedIn && active) }
}

export const handlers = [
  ws.link('ws://*/ws/session').addEventListener('connection', ({ client }) => {
    if (server.isLoggedIn) client.send(JSON.stringify({ event: 'session', ...session() }))
    else client.close(4401, 'login_required')
  }),
  http.get('*/auth/session', () => respond(200, session())),
  // A handler that returns nothing leaves the call to the next one.
  http.all('*/api/*', ({ request }) => {
    if (request.headers.get('X-CSRF') !== '1') return problem(403, 'csrf_rejected')
    if (!server.isLoggedIn) return problem(401, 'login_required', { login_url: '/auth/login' })
  }),
  http.get('*/api/trading/v1/options/accounts', () => respond(200, { data: [{ account_id: 'A1', balance: 10 }] })),
  http.post('*/api/payment-agents/v1/transfer', async ({ request }) => {
    const key = request.headers.get('Idempotency-Key')
    const sent = await request.text()
    const before = key === null ? undefined : calls.get(key)
    if (before && before.sent !== sent) return problem(422, 'idempotency_key_reused')
    if (before) return respond(201, before.answer, { 'Idempotency-Replayed': 'true' })
    const answer = { data: { request_id: `transfer-${++server.transfers}`, status: 'completed' } }
    if (key !== null) calls.set(key, { sent, answer })
    if (!server.losesNextAnswer) return respond(201, answer)
    server.losesNextAnswer = false
    return HttpResponse.error()
  }),
]
