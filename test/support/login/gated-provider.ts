import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { freePort } from '../../../sandbox/listening.ts'
import type { ProviderOptions, SandboxProvider } from '../../../sandbox/provider.ts'
import { logIn, testProvider, type StartProvider } from '../parts.ts'
import { httpServer } from '../server/http-server.ts'
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

const open = async (): Promise<boolean> => true

/**
 * Such a provider as a part of a world: refresh tokens are given, rotate, and revoke everything when used twice.
 * Provider and gate have the same port, on two loopback addresses, so that the provider's own address is the gate's.
 */
export function gated(options: Partial<ProviderOptions> = {}): StartProvider<GatedProvider> {
  return async (t, publicUrl) => {
    const port = await freePort()
    const bind = '127.0.0.2'
    const provider = await testProvider(t, publicUrl, { refreshTokens: true, port, bind, ...options })
    const { url } = provider
    const hooks = { expiresIn: undefined, before: open, after: open }
    const gate: GatedProvider = { provider, url, refreshes: [], revoked: [], ...hooks }
    const relay: RequestListener = (request, response) =>
      void pass(gate, request, response, { host: bind, port }).catch(() => response.destroy())
    await httpServer(t, relay, port)
    const settings = { AUTH_URL: url, REVOCATION_URL: `${url}/oauth2/revoke` }
    return { provider: gate, users: provider, settings, logIn }
  }
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
