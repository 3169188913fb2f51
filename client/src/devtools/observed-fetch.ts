import type { Debugged } from '../core/create-client.ts'
import { SLOW_MS, type Faults } from './faults.ts'
import type { Call, Traffic } from './traffic.ts'

/** How the client calls its server. */
type Fetch = Debugged[1]['fetch']

/** Calls the server, notes what becomes of each call, and makes of it what the faults demand. */
export function observedFetch(fetch: Fetch, traffic: Traffic, faults: Faults, onAuth: (call: Call) => void): Fetch {
  return async (path, init) => {
    const call = traffic.call(init.method ?? 'GET', path)
    const startedAt = performance.now()
    try {
      const response = await respond(fetch, faults, path, init)
      call.requestId = response.headers.get('x-request-id')
      call.status = response.status
      await noteContent(call, response, traffic, onAuth)
      return response
    } catch (error) {
      call.status = 'no response'
      traffic.lost(call)
      throw error
    } finally {
      call.tookMs = performance.now() - startedAt
      traffic.changed()
    }
  }
}

async function respond(fetch: Fetch, faults: Faults, path: string, init: RequestInit): Promise<Response> {
  if (faults.has('offline')) throw lost()
  const ended = faults.has('sessionEnded') ? withoutSession(path, init.method) : undefined
  const response = ended ?? (await fetch(path, init))
  if (faults.has('slow')) await delayed(init.signal)
  // The browser is offline by now, so that nothing arrives.
  if (faults.has('offline')) throw lost()
  if (init.method !== undefined && init.method !== 'GET' && path.startsWith('/api/') && faults.takeLostAnswer())
    throw lost()
  return response
}

/** What a browser reports of a call that gets no response. */
const lost = (): TypeError => new TypeError('Failed to fetch')

function delayed(signal: AbortSignal | null | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, SLOW_MS)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    })
  })
}

/** The response of a server where nobody is logged in; undefined for what needs no session. */
function withoutSession(path: string, method = 'GET'): Response | undefined {
  if (path.startsWith('/auth/session') && method === 'GET' && !path.startsWith('/auth/sessions'))
    return Response.json({ authenticated: false, now: Math.floor(Date.now() / 1000) })
  if (!/^\/(api|auth\/session)/.test(path) || path.startsWith('/api/v1/health')) return undefined
  const problem = {
    type: '/problems/session_expired',
    title: 'The session has ended',
    status: 401,
    detail: 'Invented by the devtools',
    code: 'session_expired',
    request_id: '',
  }
  return new Response(JSON.stringify(problem), {
    status: 401,
    headers: { 'content-type': 'application/problem+json', 'x-request-id': 'devtools' },
  })
}

/** Notes who has told of the session, and why a call is refused. */
async function noteContent(
  call: Call,
  response: Response,
  traffic: Traffic,
  onAuth: (call: Call) => void,
): Promise<void> {
  const { ok, status, headers } = response
  const isProblem = headers.get('content-type')?.startsWith('application/problem+json') === true
  const json = isProblem
    ? ((await response
        .clone()
        .json()
        .catch(() => undefined)) as unknown)
    : undefined
  if (call.path.startsWith('/auth/')) onAuth(call)
  if (ok || status === 304) return
  const { code, detail } = Object(json) as { code?: string; detail?: string }
  traffic.refused(call, status, code, detail)
}
