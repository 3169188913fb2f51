import createClient from 'openapi-fetch'
import type { paths } from './paths.ts'

/** Only scripts of the page can send the header, and every call needs it. */
export const api = createClient<paths>({ headers: { 'X-CSRF': '1' } })

const TRANSFER = '/api/payment-agents/v1/transfer'
type Transfer = paths[typeof TRANSFER]['post']['requestBody']['content']['application/json']['data']

/** `unknown`: it may have been made, so do not order again before `find` has said what became of it. */
export type Outcome = 'made' | 'refused' | 'unknown'

/**
 * Sends a transfer once. It never throws, since a lost answer is no failure.
 * @param data has a `request_id` that was chosen and stored when the user confirmed
 */
export async function transfer(data: Transfer & { request_id: string }): Promise<Outcome> {
  try {
    // A key for each order, and never among the headers of the client, where all calls would share it.
    const headers = { 'Idempotency-Key': crypto.randomUUID() }
    // A redirect is that of a proxy; fetch would follow it, and may send the order again.
    const { error, response } = await api.POST(TRANSFER, { body: { data }, headers, redirect: 'manual' })
    // The server adds the id to all its responses. A proxy does not, and it may have forwarded the call.
    if (!response.headers.has('X-Request-Id')) return 'unknown'
    // A refusal without a body has no error, as a success has none.
    if (response.ok) return 'made'
    return typeof error === 'object' && 'outcome' in error && error.outcome === 'unknown' ? 'unknown' : 'refused'
  } catch {
    return 'unknown'
  }
}

/** Whether a transfer was made, by its `request_id`. False means: not yet. */
export async function find(request_id: string): Promise<boolean> {
  const path = { request_id }
  const { response } = await api.GET('/api/payment-agents/v1/transfer/{request_id}', { params: { path } })
  if (!response.ok && response.status !== 404) throw new Error(`It cannot be told at the moment: ${response.status}`)
  return response.ok
}

/** Whether the server works. It responds with text, which the client would take for JSON and throw. */
export async function isHealthy(): Promise<boolean> {
  return (await api.GET('/api/v1/health', { parseAs: 'text' })).response.ok
}
