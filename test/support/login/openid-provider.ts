import type { Test } from 'tap'
import type { ProviderOptions, SandboxProvider } from '../../../sandbox/provider.ts'
import { readConfig } from '../../../src/config/config.ts'
import { discover } from '../../../src/oauth/discovery.ts'
import type { Arrival, JarBrowser } from '../browser/jar-browser.ts'
import { sandboxProvider, type StartProvider } from '../parts.ts'
import { startWorld, type World } from '../world.ts'
import { ALONE } from '../server/settings.ts'
import { OIDC } from './oidc-world.ts'

/**
 * A real provider with OpenID Connect and both logouts, as a part of a world.
 * @param client what the provider knows of the client beside what every world has
 */
export function openIdProvider(
  options: Partial<ProviderOptions>,
  client: Record<string, unknown> = {},
): StartProvider<SandboxProvider> {
  return async (t, publicUrl) => {
    const registered = { ...registration(publicUrl), ...client }
    const part = await sandboxProvider({ ...options, client: registered, library: LIBRARY })(t, publicUrl)
    const discovered = await discover(readConfig({ ...ALONE, ...OIDC, ...part.settings }).oauth)
    if (discovered.is !== 'found') throw new Error(`no metadata: ${JSON.stringify(discovered)}`)
    const { jwksUrl = '', endSessionUrl = '' } = discovered.provider.oidc ?? {}
    return { ...part, settings: { ...part.settings, JWKS_URL: jwksUrl, END_SESSION_URL: endSessionUrl } }
  }
}

/** Starts a world with such a provider. It ends with the test. */
export function openIdWorld(
  t: Test,
  {
    client = {},
    settings = {},
    accessTokenSeconds = 3600,
  }: {
    client?: Record<string, unknown>
    settings?: Record<string, string>
    accessTokenSeconds?: number
  } = {},
): Promise<World> {
  const provider = openIdProvider({ refreshTokens: true, accessTokenSeconds }, client)
  const scope = { OAUTH_SCOPE: 'openid profile trade offline_access', AUTHORIZATION_PARAMS: 'prompt=consent' }
  return startWorld(t, { provider, upstream: 'sandbox', settings: { ...OIDC, ...scope, ...settings } })
}

function registration(publicUrl: string) {
  return {
    token_endpoint_auth_method: 'none' as const,
    backchannel_logout_uri: `${publicUrl}/auth/backchannel-logout`,
    backchannel_logout_session_required: true,
    post_logout_redirect_uris: [`${publicUrl}/auth/logged-out`],
  }
}

const [ON, OFF] = [{ enabled: true }, { enabled: false }]

/** The settings of oidc-provider that replace those of the sandbox. */
const LIBRARY = {
  scopes: ['openid', 'profile', 'trade', 'account_manage', 'offline_access'],
  claims: { openid: ['sub', 'sid'], profile: ['name', 'email_verified'] },
  conformIdTokenClaims: false,
  findAccount: (_context: unknown, accountId: string) => ({
    accountId,
    claims: () => ({ sub: accountId, name: `Name of ${accountId}`, email_verified: true }),
  }),
  // Its own would refuse loopback addresses.
  fetch: (url: string, options: RequestInit) => {
    delete options.dispatcher
    return fetch(url, options)
  },
  features: {
    revocation: ON,
    devInteractions: OFF,
    dPoP: OFF,
    pushedAuthorizationRequests: OFF,
    resourceIndicators: OFF,
    userinfo: OFF,
    backchannelLogout: ON,
    rpInitiatedLogout: {
      ...ON,
      logoutSource: (context: { body: unknown }, form: string) =>
        void (context.body = `Do you want to log out? ${form}`),
      postLogoutSuccessSource: (context: { body: unknown }) => void (context.body = 'You are logged out.'),
    },
  },
}

/**
 * Answers the provider's question whether to log out there, too.
 * @param choice `yes` ends its session; `no` only that of this client
 */
export function confirmLogout(browser: JarBrowser, page: Arrival, choice: 'yes' | 'no' = 'yes'): Promise<Arrival> {
  const action = /action="([^"]+)"/.exec(page.body)?.[1]
  if (action === undefined) throw new Error(`no question, but ${page.url.href}`)
  return browser.submit({ ...page, url: new URL(action) }, choice === 'yes' ? { logout: 'yes' } : {})
}
