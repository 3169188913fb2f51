import type { Test } from 'tap'
import type { ProviderOptions, SandboxProvider } from '../../sandbox/provider.ts'
import type { SandboxUpstream, UpstreamOptions } from '../../sandbox/upstream.ts'
import type { Arrival, JarBrowser } from './browser/jar-browser.ts'
import { ALONE } from './server/settings.ts'
import { CLIENT_ID } from './server/test-server.ts'
import { keepOutOfLogs } from './telemetry/log-scan.ts'
import { rawUpstream, type RawUpstream } from './upstream/raw-upstream.ts'
import { ScriptedUpstream } from './upstream/scripted-upstream.ts'

/** A provider of a world. */
export interface ProviderPart<Provider> {
  readonly provider: Provider
  /** The settings that name it. */
  readonly settings: Readonly<Record<string, string>>
  /** Logs a browser in: as the usual user unless a name is given. */
  readonly logIn: (browser: JarBrowser, publicUrl: string, name?: string) => Promise<Arrival>
  /** Tells the sandbox's upstream whose a token is. */
  readonly users?: SandboxProvider
}

/** Starts a provider for servers at this address. It ends with the test. */
export type StartProvider<Provider> = (t: Test, publicUrl: string) => Promise<ProviderPart<Provider>>

/** A provider of the sandbox, one of whose clients is the server at this address; no log may have its secrets. */
export async function testProvider(
  t: Test,
  publicUrl: string,
  options: Partial<ProviderOptions> = {},
): Promise<SandboxProvider> {
  // Loading it takes longer than starting a server, and many tests need none.
  const { startProvider } = await import('../../sandbox/provider.ts')
  const provider = await startProvider({
    clientId: CLIENT_ID,
    redirectUris: [`${publicUrl}/auth/callback`],
    ...options,
  })
  t.teardown(() => provider.close())
  for (const secrets of [provider.issued, provider.verifiers]) keepOutOfLogs(secrets)
  return provider
}

/** The sandbox's provider as a part of a world. */
export function sandboxProvider(options?: Partial<ProviderOptions>): StartProvider<SandboxProvider> {
  return async (t, publicUrl) => {
    const provider = await testProvider(t, publicUrl, options)
    return { provider, users: provider, settings: { AUTH_URL: provider.url }, logIn }
  }
}

/** Logs a browser in at the sandbox's provider, or signs it up, if it is not the usual user. @param name an address, or its beginning */
export async function logIn(browser: JarBrowser, publicUrl: string, name = 'demo'): Promise<Arrival> {
  const form = await browser.navigate(`${publicUrl}/auth/${name === 'demo' ? 'login' : 'signup'}`)
  const email = name.includes('@') ? name : `${name}@example.test`
  return browser.submit(form, { email, password: 'any', action: 'continue' })
}

/** The sandbox's upstream, which asks that provider whose a token is. No log may have its secrets. */
async function testUpstream(t: Test, options: UpstreamOptions): Promise<SandboxUpstream> {
  const { startUpstream } = await import('../../sandbox/upstream.ts')
  const upstream = await startUpstream({ tickMs: 50, ...options })
  t.teardown(() => upstream.close())
  keepOutOfLogs(upstream.issued)
  return upstream
}

/** The upstreams that a world may have, by name. */
export interface Upstreams {
  readonly sandbox: SandboxUpstream
  readonly scripted: ScriptedUpstream
  readonly raw: RawUpstream
  readonly none: undefined
}

/** Upstream's page of partners, which is an optional route. */
const OVERVIEW = { PARTNER_OVERVIEW_PATH: '/partners/analytics/v1/overview' }

/** Starts an upstream of this name that ends with the test. @returns it, and the settings that name it */
export async function upstreamPart(
  t: Test,
  name: keyof Upstreams,
  users: SandboxProvider | undefined,
  options: Partial<UpstreamOptions> = {},
): Promise<{ upstream: Upstreams[keyof Upstreams]; settings: Readonly<Record<string, string>> }> {
  if (name === 'none') return { upstream: undefined, settings: { API_URL: ALONE.API_URL, WS_URL: ALONE.WS_URL } }
  if (name === 'raw') {
    const upstream = await rawUpstream(t)
    const settings = { ...OVERVIEW, API_URL: upstream.url, WS_URL: upstream.url.replace('http', 'ws') }
    return { upstream, settings }
  }
  if (name === 'scripted') {
    const upstream = await ScriptedUpstream.start(t)
    return { upstream, settings: { API_URL: `http://${upstream.host}`, WS_URL: `ws://${upstream.host}` } }
  }
  if (users === undefined) throw new Error("the sandbox's upstream needs its provider")
  const upstream = await testUpstream(t, { provider: users, ...options })
  return { upstream, settings: { ...OVERVIEW, API_URL: upstream.url, WS_URL: upstream.wsUrl } }
}
