import type { Test } from 'tap'
import { type ProviderOptions, type SandboxProvider, startProvider } from '../../../sandbox/provider.ts'
import { CLIENT_ID, REDIRECT_URI, TestClient } from './oauth-client.ts'
import { MessageSocket } from '../browser/message-socket.ts'
import { type SandboxUpstream, startUpstream, type UpstreamOptions } from '../../../sandbox/upstream.ts'

export type Json = Record<string, unknown>

/** Introspection for tests without logins. */
export const nobody = { isActive: async () => undefined }

/** A contract on a rising price, of so many ticks. */
export function rise(ticks: number): Json {
  const terms = { basis: 'stake', contract_type: 'CALL', underlying_symbol: 'R_100', duration_unit: 't' }
  return { ...terms, amount: 10, currency: 'USD', duration: ticks }
}

/** A running provider and its one client. */
export interface ProviderWorld {
  provider: SandboxProvider
  client: TestClient
}

/** A provider that ends with the test, and a client that is registered there. */
export async function providerOf(t: Test, options: Partial<ProviderOptions> = {}): Promise<ProviderWorld> {
  const provider = await startProvider({ clientId: CLIENT_ID, redirectUris: [REDIRECT_URI], ...options })
  t.teardown(() => provider.close())
  return { provider, client: new TestClient(provider.url) }
}

/** A running sandbox as one user sees it. */
export interface TradingWorld {
  upstream: SandboxUpstream
  token: string
  /** Calls as the demo user; headers may be replaced, '' leaves one out. */
  call: (method: string, path: string, body?: Json, headers?: Record<string, string>) => Promise<Answer>
  /** A new WebSocket URL for an account of the demo user. */
  otpUrl: (type: 'demo' | 'real') => Promise<string>
}

/** A JSON response of the REST API. */
interface Answer {
  status: number
  headers: Headers
  body: Json
}

/** Provider and upstream, with the demo user logged in. A tick takes 50 ms. */
export async function trading(t: Test): Promise<TradingWorld> {
  const { provider, client } = await providerOf(t)
  const { token } = await client.exchange(await client.logIn())
  const upstream = await startUpstream({ provider, tickMs: 50 })
  t.teardown(() => upstream.close())
  const call: TradingWorld['call'] = async (method, path, body, other = {}) => {
    const headers = Object.entries({ authorization: `Bearer ${token}`, ...other }).filter(([, value]) => value)
    const response = await fetch(upstream.url + path, {
      method,
      headers: Object.fromEntries(headers),
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, headers: response.headers, body: (await response.json()) as Json }
  }
  return {
    upstream,
    token,
    call,
    async otpUrl(type) {
      const accounts = (await call('GET', '/trading/v1/options/accounts')).body['data'] as Json[]
      const id = accounts.find((account) => account['account_type'] === type)?.['account_id']
      const { body } = await call('POST', `/trading/v1/options/accounts/${String(id)}/otp`)
      return (body['data'] as { url: string }).url
    },
  }
}

/** A WebSocket that ends with the test. */
export async function messageSocket(t: Test, url: string): Promise<MessageSocket> {
  const line = await MessageSocket.connect(url)
  t.teardown(() => line.socket.terminate())
  return line
}

/** A public WebSocket of a trading service that has no users, and whose prices stand still. It ends with the test. */
export async function publicLine(
  t: Test,
  options: Partial<UpstreamOptions> = {},
): Promise<{ line: MessageSocket; url: string }> {
  const upstream = await startUpstream({ provider: nobody, tickMs: 3_600_000, ...options })
  t.teardown(() => upstream.close())
  const url = `${upstream.wsUrl}/trading/v1/options/ws/public`
  return { line: await messageSocket(t, url), url }
}
