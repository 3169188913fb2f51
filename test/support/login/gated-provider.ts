import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import type { ProviderOptions, SandboxProvider } from '../../../sandbox/provider.ts'
import type { RedisProcess } from '../../../sandbox/redis-process.ts'
import type { SandboxUpstream } from '../../../sandbox/upstream.ts'
import { freePort } from '../../../sandbox/listening.ts'
import { httpServer } from '../server/http-server.ts'
import { testProvider, testRedis, testUpstream } from '../server/world.ts'
import { passOn } from './pass-on.ts'

/** The sandbox's provider behind a gate at its token endpoint. */
export interface GatedProvider {
  readonly provider: SandboxProvider
  readonly url: string
  /** The refresh requests that reached the gate. */
  readonly refreshes: URLSearchParams[]
  /** Tokens that were revoked. */
  readonly revoked: string[]
  /** The expires_in of the next tokens; undefined: the real one. */
  expiresIn: number | undefined
  /** Hooks before a refresh reaches the provider, and before its response is sent. False closes the connection. */
  before: () => Promise<boolean>
  after: () => Promise<boolean>
}

/** A gated provider, an upstream and a Redis, for servers that share them. */
export interface GatedWorld {
  readonly gate: GatedProvider
  readonly upstream: SandboxUpstream
  readonly redis: RedisProcess
  /** Where one of the servers must listen. */
  readonly port: number
  readonly publicUrl: string
  readonly settings: Record<string, string>
}

/** Starts one that ends with the test. */
export async function gatedWorld(t: Test, options: Partial<ProviderOptions> = {}): Promise<GatedWorld> {
  const port = await freePort()
  const publicUrl = `http://localhost:${port}`
  const gate = await gatedProvider(t, publicUrl, options)
  const upstream = await testUpstream(t, { provider: gate.provider })
  const redis = await testRedis(t)
  const settings = {
    PUBLIC_URL: publicUrl,
    AUTH_URL: gate.url,
    REVOCATION_URL: `${gate.url}/oauth2/revoke`,
    API_URL: upstream.url,
    WS_URL: upstream.wsUrl,
    REDIS_URL: redis.url,
  }
  return { gate, upstream, redis, port, publicUrl, settings }
}

const open = async (): Promise<boolean> => true

/**
 * Starts one that ends with the test: refresh tokens are given, rotate, and revoke everything when used twice.
 * Provider and gate have the same port, on two loopback addresses, so that the provider's own address is the gate's.
 */
async function gatedProvider(t: Test, publicUrl: string, options: Partial<ProviderOptions>): Promise<GatedProvider> {
  const port = await freePort()
  const bind = '127.0.0.2'
  const provider = await testProvider(t, publicUrl, { refreshTokens: true, port, bind, ...options })
  const gate: GatedProvider = {
    provider,
    url: provider.url,
    refreshes: [],
    revoked: [],
    expiresIn: undefined,
    before: open,
    after: open,
  }
  const relay: RequestListener = (request, response) =>
    void pass(gate, request, response, { host: bind, port }).catch(() => response.destroy())
  await httpServer(t, relay, port)
  return gate
}

async function pass(
  gate: GatedProvider,
  request: IncomingMessage,
  response: ServerResponse,
  to: { host: string; port: number },
): Promise<void> {
  const body = await buffer(request)
  const form = new URLSearchParams(body.toString())
  const isRefresh = form.get('grant_type') === 'refresh_token'
  if (request.url === '/oauth2/revoke') gate.revoked.push(form.get('token') ?? '')
  if (isRefresh) {
    gate.refreshes.push(form)
    if (!(await gate.before())) return void response.destroy()
  }
  const passed = await passOn(request, body, to)
  if (isRefresh && !(await gate.after())) return void response.destroy()
  passed.send(response, gate.expiresIn)
}
