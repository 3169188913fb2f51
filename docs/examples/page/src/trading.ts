import { ApiError, createClient, SocketError } from 'trading-bff-client'

export const client = createClient()
export const market = client.publicSocket()

// Vite replaces this module in the running page: the client before it ends, and what imports it is replaced too.
import.meta.hot?.accept(() => import.meta.hot?.invalidate())
import.meta.hot?.dispose(() => client.close())

/** What to tell the user when a call, a request or a command has failed. Any other error is a bug of the page. */
export function explain(error: unknown): string {
  if (!(error instanceof ApiError || error instanceof SocketError)) throw error
  if (error.outcome === 'unknown') return 'It may or may not have been done. Please check before you try again.'
  if (/^not_(?:sent|loaded)$/.test(error.code ?? '')) return 'The connection is interrupted, so nothing was sent.'
  if (error instanceof ApiError) return error.detail ?? `The request failed with the status ${error.status}.`
  return error.code === 'closed' ? '' : error.message
}
