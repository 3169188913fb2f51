import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { type Context, type Grant, interactionPolicy } from 'oidc-provider'
import type { ProviderMemory } from './memory.ts'
import { errorPage } from './pages.ts'
import { ATTRIBUTION_PARAMETERS } from './attribution.ts'
import type { Users } from './users.ts'

/** How a client authenticates with the provider (RFC 7591 §2). */
export type ClientRegistration = {
  token_endpoint_auth_method: 'none' | 'client_secret_post' | 'client_secret_basic' | 'private_key_jwt'
} & Record<string, unknown>

const PUBLIC_CLIENT: ClientRegistration = { token_endpoint_auth_method: 'none' }

export interface ProviderSettings {
  clientId: string
  /** A public client by default. */
  client?: ClientRegistration
  requirePushed?: boolean
  redirectUris: readonly string[]
  accessTokenSeconds: number
  refreshTokens: boolean
  /** Distinguishes the cookies of several providers, as browsers share cookies between the ports of a host. */
  cookiePrefix: string
  memory: ProviderMemory
  users: Users
}

/** The address of the application, to which pages for errors link: the origin of its first redirect URI. */
export function homeUrlOf(redirectUris: readonly string[]): string {
  return redirectUris.map((uri) => new URL(uri).origin)[0] ?? '/'
}

/**
 * Settings that reduce oidc-provider, an OpenID Connect server, to an OAuth 2.0 server (docs/upstream.md, The provider) with
 * opaque tokens and PKCE with S256.
 */
export function oidcSettings(settings: ProviderSettings): Record<string, unknown> {
  const { memory, users, refreshTokens, client = PUBLIC_CLIENT, requirePushed = false } = settings
  const homeUrl = homeUrlOf(settings.redirectUris)
  const scopes = ['trade', 'account_manage', ...(refreshTokens ? ['offline_access'] : [])]
  return {
    adapter: (kind: string) => memory.adapter(kind),
    clients: [registration(settings, client)],
    clientAuthMethods: [client.token_endpoint_auth_method],
    clientBasedCORS: () => false,
    // The default of 15 s would accept expired tokens.
    clockTolerance: 0,
    scopes,
    claims: {},
    pkce: { required: () => true },
    extraParams: [...ATTRIBUTION_PARAMETERS, 'app_id'],
    routes: {
      authorization: '/oauth2/auth',
      token: '/oauth2/token',
      revocation: '/oauth2/revoke',
      pushed_authorization_request: '/oauth2/par',
    },
    features: features(requirePushed),
    interactions: {
      policy: promptPolicy(),
      url: (_context: Context, interaction: { uid: string }) => `/interaction/${interaction.uid}`,
    },
    loadExistingGrant,
    findAccount: (_context: Context, accountId: string) =>
      users.byAccountId(accountId) && { accountId, claims: () => ({ sub: accountId }) },
    // A logout at the provider does not end tokens.
    expiresWithSession: () => false,
    issueRefreshToken: () => refreshTokens,
    rotateRefreshToken: true,
    ttl: lifetimes(settings.accessTokenSeconds),
    cookies: cookies(settings.cookiePrefix),
    jwks: { keys: [signingKey()] },
    renderError: (context: Context, error: { error: string; error_description?: string }) => {
      context.type = 'html'
      context.body = errorPage({ error: error.error, description: error.error_description, homeUrl })
    },
  }
}

function registration(
  { clientId, redirectUris, refreshTokens }: ProviderSettings,
  client: ClientRegistration,
): Record<string, unknown> {
  return {
    client_id: clientId,
    client_name: clientId,
    redirect_uris: [...redirectUris],
    response_types: ['code'],
    grant_types: ['authorization_code', ...(refreshTokens ? ['refresh_token'] : [])],
    ...client,
    id_token_signed_response_alg: 'ES256',
  }
}

function features(requirePushed: boolean): Record<string, unknown> {
  const on = { enabled: true }
  const off = { enabled: false }
  return {
    revocation: { ...on, allowedPolicy: sameClient },
    devInteractions: off,
    dPoP: off,
    pushedAuthorizationRequests: requirePushed ? { ...on, requirePushedAuthorizationRequests: true } : off,
    resourceIndicators: off,
    rpInitiatedLogout: off,
    userinfo: off,
  }
}

function sameClient(_context: Context, client: { clientId: string }, token: { clientId: string }): boolean {
  return token.clientId === client.clientId
}

/** Checks `prompt=registration`, which requests the sign-up screen, before all other prompts. */
function promptPolicy(): unknown {
  const policy = interactionPolicy.base()
  policy.add(new interactionPolicy.Prompt({ name: 'registration', requestable: true }), 0)
  return policy
}

/**
 * Creates a separate grant for every login, even if the browser is still logged in to the provider. Otherwise, two logins
 * would share a grant, and revoking a token of the first would end the tokens of the second.
 */
async function loadExistingGrant({ oidc }: Context): Promise<Grant | undefined> {
  const { provider, session } = oidc
  const { clientId } = oidc.client
  const fresh = oidc.result?.consent?.grantId
  if (fresh !== undefined) return provider.Grant.find(fresh)
  const earlierId = session.grantIdFor(clientId)
  const earlier = earlierId === undefined ? undefined : await provider.Grant.find(earlierId)
  if (!earlier) return undefined
  const grant = new provider.Grant({ accountId: session.accountId, clientId })
  grant.addOIDCScope(earlier.getOIDCScope())
  await grant.save()
  return grant
}

function lifetimes(accessTokenSeconds: number): Record<string, number> {
  const hour = 60 * 60
  const fortnight = 14 * 24 * hour
  return {
    AccessToken: accessTokenSeconds,
    AuthorizationCode: 60,
    Interaction: hour / 2,
    Session: fortnight,
    Grant: fortnight,
    RefreshToken: fortnight,
    IdToken: hour,
  }
}

function cookies(prefix: string): Record<string, unknown> {
  return {
    keys: [randomBytes(32).toString('base64url')],
    names: { session: `${prefix}_session`, interaction: `${prefix}_interaction`, resume: `${prefix}_resume` },
  }
}

/** A key that is never used. Without it, the library would generate one and print a warning. */
function signingKey(): unknown {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
}
