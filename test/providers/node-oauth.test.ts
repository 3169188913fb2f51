import { test } from 'tap'
import { checkProduct } from '../support/providers/product-checks.ts'
import { productProcess, type Product } from '../support/providers/provider-product.ts'

/** It has no revocation. */
const NODE_OAUTH: Product = {
  name: '@node-oauth/oauth2-server',
  isPersistent: false,
  revocation: 'missing',
  start: (t, address) => productProcess(t, [process.execPath, 'node_oauth_server.mjs'], address),
  settings: (provider, gate) => ({
    AUTHORIZATION_URL: `${provider}/authorize`,
    TOKEN_URL: `${gate}/token`,
    CLIENT_SECRET: 'node-oauth-secret',
  }),
  wrongClient: { CLIENT_SECRET: 'wrong' },
  logIn: (browser, first) => browser.submit(first, { action: 'allow' }),
  deny: async (browser, start) => browser.submit(await start(), { action: 'deny' }),
}

await test('@node-oauth/oauth2-server', (t) => checkProduct(t, NODE_OAUTH))
