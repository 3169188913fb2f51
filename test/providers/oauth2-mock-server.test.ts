import { test } from 'tap'
import { checkProduct } from '../support/providers/product-checks.ts'
import { productProcess, type Product } from '../support/providers/provider-product.ts'

/** It has no pages, and redirects at once. */
const MOCK_SERVER: Product = {
  name: 'oauth2-mock-server',
  isPersistent: false,
  revocation: 'is accepted',
  isRecognised: false,
  start: (t, address) => productProcess(t, [process.execPath, 'mock_server.mjs'], address),
  // It calls itself localhost.
  settings: (provider, gate) => ({
    DISCOVERY: 'true',
    ISSUER: provider.replace('127.0.0.1', 'localhost'),
    TOKEN_URL: `${gate}/token`,
    REVOCATION_URL: `${gate}/revoke`,
  }),
  wrongClient: { CLIENT_ID: 'another-client' },
  logIn: async (_browser, first) => first,
  deny(browser, start) {
    const cookie = { name: 'deny', value: '1', host: 'localhost', path: '/', secure: false, httpOnly: true } as const
    browser.cookies.set('deny', { ...cookie, sameSite: 'none', maxAgeSeconds: undefined, expiresAt: Infinity })
    return start()
  },
}

await test('oauth2-mock-server', (t) => checkProduct(t, MOCK_SERVER))
