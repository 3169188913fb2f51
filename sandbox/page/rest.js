/** Calls to our own server. Each carries X-CSRF; cookies go along by themselves, tokens never come back. */
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

/** What to do when a call is answered with 401: look at the session again. */
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
    update({ status: 'no answer', tone: 'bad', detail: took(started) })
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
  const error = new ApiError(
    response.status,
    problemOf(content, requestId),
    response.headers.get('retry-after'),
  )
  if (error.status === 401) onUnauthorized()
  throw error
}

/** Shows a failed call in the message area. Lost sessions are announced by the session itself. */
export function explain(error, what, key = what) {
  if (!(error instanceof ApiError)) throw error
  if (error.status === 401) return
  const hint = error.outcomeUnknown
    ? ' It may have been carried out all the same: look before you repeat it.'
    : ''
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

/** Our own problems as they are; the upstream's errors come in several shapes. */
function problemOf(content, requestId) {
  const request_id = content?.request_id ?? requestId ?? undefined
  if (typeof content?.code === 'string') return { ...content, request_id }
  const first = content?.errors?.[0] ?? content?.error ?? {}
  return { detail: first.message ?? content?.message, request_id }
}

const SENTENCES = {
  login_required: 'Please log in first.',
  session_expired: 'Your session has ended, please log in again.',
  csrf_rejected: 'The server refused it, because it did not seem to come from this page.',
  upstream_error: 'The trading service reported a fault.',
  upstream_unreachable: 'The trading service cannot be reached, nothing was sent.',
  upstream_lost: 'The connection to the trading service broke.',
  upstream_timeout: 'The trading service did not answer in time.',
  credential_renewed: 'Your login was renewed meanwhile and nothing was carried out: please do it once more.',
  provider_unavailable: 'The login provider cannot be reached at the moment.',
  session_store_unavailable: 'The server cannot look up sessions at the moment, please try again shortly.',
  shutting_down: 'The server is restarting, please repeat it in a moment.',
}

function sentence(status, problem, retryAfter) {
  if (status === 0) return 'The server did not answer.'
  if (status === 429)
    return `Too many requests, please wait ${Number(retryAfter) > 0 ? `${retryAfter} seconds` : 'a minute'}.`
  if (Object.hasOwn(SENTENCES, problem.code ?? '')) return SENTENCES[problem.code]
  if (status === 403) return 'Your login does not carry the permission for it; the session itself is fine.'
  return problem.detail ?? problem.title ?? `The answer was ${status}.`
}
