import { ApiError, createClient, SocketError, type ApiPath } from 'trading-bff-client'

export const client = createClient()
export const market = client.publicSocket()

export type Account = { account_id: string; account_type: string; currency: string }
export type Wallet = { wallet_id: string; wallet_type: string; currency: string; balance: string }

/** Reads a list from the trading service. */
export const read = async <T>(path: ApiPath<'GET'>): Promise<T[]> =>
  (await (await client.api(path)).json<{ data: T[] }>()).data

/** What to tell the user when a call, a request or a command has failed. Any other error is a bug of the page. */
export function explain(error: unknown): string {
  if (!(error instanceof ApiError || error instanceof SocketError)) throw error
  if (error.outcome === 'unknown') return 'It may or may not have been done. Please check before you try again.'
  if (error.code === 'not_sent') return 'The connection is interrupted, so nothing was sent.'
  if (error instanceof ApiError) return error.problem?.title ?? `The request failed with the status ${error.status}.`
  return error.code === 'closed' ? '' : error.message
}
