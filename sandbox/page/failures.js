/** Failed calls in words. Decided by the problem's code and by the status, never by the server's text. */
import { ApiError } from './bff.js'
import { notice } from './notices.js'

const SENTENCES = {
  csrf_rejected: 'The server refused the request, because it did not seem to come from this page.',
  upstream_error: 'The trading service reported a fault.',
  upstream_unreachable: 'The trading service cannot be reached. Nothing was sent.',
  upstream_lost: 'The connection to the trading service broke.',
  upstream_timeout: 'The trading service did not respond in time.',
  idempotency_in_progress: 'The same request is already in progress.',
  outcome_unknown: 'Nobody knows whether the same request was executed before, so it was not sent again.',
  answer_not_kept: 'The same request was executed before.',
  credential_renewed: 'Your login was renewed meanwhile and nothing was executed. Please try again.',
  provider_unavailable: 'The login provider cannot be reached at the moment.',
  session_store_unavailable: 'The server cannot read sessions at the moment. Please try again shortly.',
  shutting_down: 'The server is restarting. Please try again in a moment.',
}

/** Shows a failed call in the message area, unless the session has ended, which the page announces by itself. */
export async function explain(error, what, key = what) {
  if (!(error instanceof ApiError)) {
    notice({ key, kind: 'error', text: `${what} The response was not understood.` })
    return reportError(error)
  }
  if (error.status === 401) return
  const hint = error.outcome === 'unknown' ? ' It may have been executed all the same: check before you repeat it.' : ''
  const text = `${what} ${await sentence(error)}${hint}`
  const requestId = error.problem?.request_id ?? error.response?.headers.get('x-request-id')
  notice({ key, kind: 'error', text, requestId })
}

/** @param error an ApiError */
export async function sentence({ status, problem, retryAfter, response }) {
  if (status === 0) return 'The server did not respond.'
  if (status === 429) return `Too many requests. Please wait ${retryAfter > 0 ? `${retryAfter} seconds` : 'a minute'}.`
  if (Object.hasOwn(SENTENCES, problem?.code ?? '')) return SENTENCES[problem.code]
  if (status === 403) return 'Your login does not have the permission for this. The session itself is fine.'
  const detail = problem ? (problem.detail ?? problem.title) : await upstreamMessage(response)
  return detail ?? `The response status was ${status}.`
}

/** The message in an error of the trading service, which come in several shapes. */
async function upstreamMessage(response) {
  const body = await response.json().catch(() => undefined)
  const message = (body?.errors?.[0] ?? body?.error ?? body)?.message
  return typeof message === 'string' ? message : undefined
}
