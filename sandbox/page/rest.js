/** Calls to this server. Each has the header X-CSRF. The browser adds the cookies; no response contains a token. */
import { record } from './inspect.js'
import { notice } from './notices.js'

const TIMEOUT_MS = 30_000
let onUnauthorized = () => {}

export class ApiError extends Error {
  constructor(status, problem, retryAfter) {
    super(sentence(status, problem, retryAfter))
    this.name = 'ApiError'
    this.status = status
    this.code = problem.code
    this.requestId = problem.request_id
    this.outcomeUnknown = problem.outcome === 'unknown'
  }
}

/** Sets the action for a 401, which checks the session again. */
export function whenUnauthorized(action) {
  onUnauthorized = action
}

export async function call(method, path, body) {
  const started = performance.now()
  const update = record({ method, path, status: 'pending' })
  let response
  try {
    response = await fetch(path, {
      method,
      headers: {
        accept: 'application/json',
        'x-csrf': '1',
        ...(body && { 'content-type': 'application/json' }),
      },
      body: body && JSON.stringify(body),
      cache: 'no-store',
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
  } catch {
    update({ status: 'no response', tone: 'bad', detail: took(started) })
    throw new ApiError(0, { outcome: method === 'GET' ? undefined : 'unknown' })
  }
  const requestId = response.headers.get('x-request-id')
  update({
    status: response.status,
    tone: response.ok ? 'good' : 'bad',
    detail: [took(started), requestId].filter(Boolean).join(' · '),
  })
  const content = await parse(response)
  if (response.ok) return content
  const error = new ApiError(response.status, problemOf(content, requestId), response.headers.get('retry-after'))
  if (error.status === 401) onUnauthorized()
  throw error
}

/** Shows a failed call in the message area. The session itself announces its end. */
export function explain(error, what, key = what) {
  if (!(error instanceof ApiError)) throw error
  if (error.status === 401) return
  const hint = error.outcomeUnknown ? ' It may have been executed all the same: check before you repeat it.' : ''
  notice({ key, kind: 'error', text: `${what} ${error.message}${hint}`, requestId: error.requestId })
}

const took = (started) => `${Math.round(performance.now() - started)} ms`

async function parse(response) {
  const isJson = /^application\/([\w.-]+\+)?json\b/i.test(response.headers.get('content-type') ?? '')
  try {
    return isJson ? await response.json() : await response.text()
  } catch {
    return undefined
  }
}

/** This server's problems unchanged. Upstream's errors come in several shapes. */
function problemOf(content, requestId) {
  const request_id = content?.request_id ?? requestId ?? undefined
  if (typeof content?.code === 'string') return { ...content, request_id }
  const first = content?.errors?.[0] ?? content?.error ?? {}
  return { detail: first.message ?? content?.message, request_id }
}

const SENTENCES = {
  login_required: 'Please log in first.',
  session_expired: 'Your session has ended. Please log in again.',
  csrf_rejected: 'The server refused the request, because it did not seem to come from this page.',
  upstream_error: 'The trading service reported a fault.',
  upstream_unreachable: 'The trading service cannot be reached. Nothing was sent.',
  upstream_lost: 'The connection to the trading service broke.',
  upstream_timeout: 'The trading service did not respond in time.',
  credential_renewed: 'Your login was renewed meanwhile and nothing was executed. Please try again.',
  provider_unavailable: 'The login provider cannot be reached at the moment.',
  session_store_unavailable: 'The server cannot read sessions at the moment. Please try again shortly.',
  shutting_down: 'The server is restarting. Please try again in a moment.',
}

function sentence(status, problem, retryAfter) {
  if (status === 0) return 'The server did not respond.'
  if (status === 429)
    return `Too many requests. Please wait ${Number(retryAfter) > 0 ? `${retryAfter} seconds` : 'a minute'}.`
  if (Object.hasOwn(SENTENCES, problem.code ?? '')) return SENTENCES[problem.code]
  if (status === 403) return 'Your login does not have the permission for this. The session itself is fine.'
  return problem.detail ?? problem.title ?? `The response status was ${status}.`
}
