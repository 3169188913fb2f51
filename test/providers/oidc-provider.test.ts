import { test } from 'tap'
import { startProvider, type ProviderOptions } from '../../sandbox/provider.ts'
import { newClientKey } from '../support/login/client-keys.ts'
import type { Arrival, JarBrowser } from '../support/browser/jar-browser.ts'
import { checkProduct } from '../support/providers/product-checks.ts'
import type { Product } from '../support/providers/provider-product.ts'
import { CLIENT_ID } from '../support/server/test-server.ts'

const key = newClientKey('P-256')
const FORM = { email: 'demo@example.test', password: 'any' }

/** The sandbox's provider, registered in another way. */
function variant(
  name: string,
  client: ProviderOptions['client'],
  { requirePushed = false, ...more }: Pick<Product, 'settings' | 'wrongClient'> & { requirePushed?: boolean },
): Product {
  return {
    name,
    isPersistent: false,
    revocation: 'works',
    ...more,
    async start(t, { port, redirectUri }) {
      const provider = await startProvider({
        clientId: CLIENT_ID,
        port,
        redirectUris: [redirectUri],
        refreshTokens: true,
        requirePushed,
        ...(client && { client }),
      })
      t.teardown(() => provider.close())
      return { stop: () => provider.close() }
    },
    logIn: (browser, first) => submit(browser, first, 'continue'),
    deny: async (browser, start) => submit(browser, await start(), 'cancel'),
  }
}

function submit(browser: JarBrowser, first: Arrival, action: string): Promise<Arrival> {
  return browser.submit(first, { ...FORM, action })
}

const named = (gate: string): Record<string, string> => ({
  TOKEN_URL: `${gate}/oauth2/token`,
  REVOCATION_URL: `${gate}/oauth2/revoke`,
})

const PRODUCTS = [
  variant('oidc-provider, public client', undefined, {
    settings: (_provider, gate) => named(gate),
    wrongClient: { CLIENT_ID: 'another-client' },
  }),
  variant(
    'oidc-provider, HTTP Basic, discovery',
    { token_endpoint_auth_method: 'client_secret_basic', client_secret: 'a secret: with/every+kind' },
    {
      settings: (_provider, gate) => ({
        ...named(gate),
        DISCOVERY: 'true',
        CLIENT_AUTH: 'client_secret_basic',
        CLIENT_SECRET: 'a secret: with/every+kind',
      }),
      wrongClient: { CLIENT_SECRET: 'wrong' },
    },
  ),
  variant(
    'oidc-provider, private_key_jwt, pushed requests required, discovery',
    { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [key.publicJwk] } },
    {
      requirePushed: true,
      settings: (provider, gate) => ({
        ...named(gate),
        DISCOVERY: 'true',
        ISSUER: provider,
        CLIENT_AUTH: 'private_key_jwt',
        CLIENT_KEY: key.pem,
      }),
      wrongClient: { CLIENT_KEY: newClientKey('P-256').pem },
    },
  ),
]

for (const product of PRODUCTS) await test(product.name, (t) => checkProduct(t, product))
