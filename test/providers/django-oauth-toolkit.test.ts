import { join } from 'node:path'
import { test } from 'tap'
import { checkProduct } from '../support/providers/product-checks.ts'
import { hiddenFields, productProcess, PYTHON, type Product } from '../support/providers/provider-product.ts'

/** With DISCOVERY=true it has OpenID Connect, so that this server can find its paths from version 3.0 on. */
const IS_DISCOVERED = process.env['DISCOVERY'] === 'true'

/** Debian's python3-django-oauth-toolkit. The names of its paths end with a slash. */
const DJANGO: Product = {
  name: 'django-oauth-toolkit',
  isPersistent: true,
  revocation: 'works',
  start: (t, address) =>
    productProcess(t, [PYTHON, 'django_server.py'], address, {
      DATABASE: join(address.folder, 'database'),
      ...(IS_DISCOVERED ? { OIDC: '1' } : {}),
    }),
  settings: (provider, gate) => ({
    ...(IS_DISCOVERED
      ? { DISCOVERY: 'true', ISSUER: `${provider}/o` }
      : { AUTHORIZATION_URL: `${provider}/o/authorize/` }),
    TOKEN_URL: `${gate}/o/token/`,
    REVOCATION_URL: `${gate}/o/revoke_token/`,
    CLIENT_AUTH: 'client_secret_basic',
    CLIENT_SECRET: 'django-secret',
  }),
  wrongClient: { CLIENT_SECRET: 'wrong' },
  logIn: (browser, first) => browser.submit(first, { ...hiddenFields(first), allow: 'Authorize' }),
  async deny(browser, start) {
    const first = await start()
    return browser.submit(first, hiddenFields(first))
  },
}

await test('django-oauth-toolkit', (t) => checkProduct(t, DJANGO))
