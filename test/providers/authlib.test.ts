import { test } from 'tap'
import { checkProduct } from '../support/providers/product-checks.ts'
import { productProcess, PYTHON, type Product } from '../support/providers/provider-product.ts'

/** Debian's python3-authlib and python3-flask. */
const AUTHLIB: Product = {
  name: 'Authlib',
  isPersistent: false,
  revocation: 'works',
  start: (t, address) => productProcess(t, [PYTHON, 'authlib_server.py'], address),
  settings: (provider, gate) => ({
    AUTHORIZATION_URL: `${provider}/oauth/authorize`,
    TOKEN_URL: `${gate}/oauth/token`,
    REVOCATION_URL: `${gate}/oauth/revoke`,
    CLIENT_AUTH: 'client_secret_basic',
    CLIENT_SECRET: 'authlib-secret_of-a.test',
  }),
  wrongClient: { CLIENT_SECRET: 'wrong' },
  logIn: (browser, first) => browser.submit(first, { action: 'allow' }),
  deny: async (browser, start) => browser.submit(await start(), { action: 'deny' }),
}

await test('Authlib', (t) => checkProduct(t, AUTHLIB))
