import { generateKeyPairSync } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import type { Arrival, JarBrowser } from '../browser/jar-browser.ts'
import { productProcess, type Product, type ProductAddress, type RunningProduct } from './provider-product.ts'

/** Where Debian's package glewlwyd is unpacked: here, or in the folder of the variable GLEWLWYD. */
const ROOT = process.env['GLEWLWYD'] ?? ''
const SCHEMA = `${ROOT}/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3`
/** The installation of the package makes the one of the other. */
const CONFIGURATION =
  ROOT === '' ? '/etc/glewlwyd/glewlwyd.conf' : `${ROOT}/usr/share/glewlwyd/templates/glewlwyd-debian.conf.properties`
/** The user that its schema contains. */
const ADMIN = { username: 'admin', password: 'password' }
const SCOPES = ['trade', 'account_manage']
const SECRET = 'glewlwyd-secret'

/** What makes it tell clients of logouts, beside what every test needs. */
interface Logouts {
  readonly client: Readonly<Record<string, unknown>>
  readonly plugin: Readonly<Record<string, unknown>>
}

/** Its OpenID Connect plugin, which pushes and discovers, with HTTP Basic. Its pages are scripts, and cannot deny. */
export const GLEWLWYD: Product = {
  name: 'Glewlwyd',
  isPersistent: true,
  revocation: 'works',
  start: startGlewlwyd,
  settings: (provider, gate) => ({
    DISCOVERY: 'true',
    ISSUER: `${provider}/api/oidc`,
    TOKEN_URL: `${gate}/api/oidc/token`,
    REVOCATION_URL: `${gate}/api/oidc/revoke`,
    PAR_URL: `${provider}/api/oidc/par`,
    CLIENT_AUTH: 'client_secret_basic',
    CLIENT_SECRET: SECRET,
  }),
  wrongClient: { CLIENT_SECRET: 'wrong' },
  logIn: consentAtGlewlwyd,
}

/** What its login page does: authenticates the user, stores the granted scopes, and goes back to the address it got. */
export async function consentAtGlewlwyd(browser: JarBrowser, first: Arrival): Promise<Arrival> {
  const json = { 'content-type': 'application/json' }
  await browser.fetch('/api/auth/', { method: 'POST', headers: json, body: JSON.stringify(ADMIN) })
  const grant = { method: 'PUT', headers: json, body: JSON.stringify({ scope: ['openid', ...SCOPES].join(' ') }) }
  await browser.fetch('/api/auth/grant/test-client', grant)
  const back = first.url.searchParams.get('callback_url')
  if (back === null) throw new Error(`no login page, but ${first.url.href}`)
  return browser.navigate(`${back}&g_continue`)
}

/** Starts it with one client and one user. */
export async function startGlewlwyd(
  t: Test,
  address: ProductAddress,
  logouts: Logouts = { client: {}, plugin: {} },
): Promise<RunningProduct> {
  const database = join(address.folder, 'database')
  if (!existsSync(database)) {
    createDatabase(database)
    // At another port, so that nobody sees it before it is complete.
    const port = await freePort()
    const incomplete = await run(t, { ...address, port }, database)
    await setUp(address, `http://127.0.0.1:${port}/api`, logouts)
    await incomplete.stop()
  }
  return run(t, address, database)
}

function run(t: Test, address: ProductAddress, database: string): Promise<RunningProduct> {
  const configuration = join(address.folder, 'glewlwyd.conf')
  writeFileSync(configuration, configurationOf(address, database))
  return productProcess(t, ['glewlwyd', `--config-file=${configuration}`], address)
}

function createDatabase(path: string): void {
  const database = new DatabaseSync(path)
  database.exec(readFileSync(SCHEMA, 'utf8'))
  database.exec(`UPDATE g_client_module_instance SET gcmi_parameters = json_set(gcmi_parameters,
    '$.data-format.post_logout_redirect_uris', json('{"multiple":true,"read":true,"write":true}'))`)
  database.close()
}

function configurationOf({ port }: ProductAddress, database: string): string {
  return readFileSync(CONFIGURATION, 'utf8')
    .replace(/^port=.*$/m, `port=${port}\nbind_address="127.0.0.1"`)
    .replace(/^external_url=.*$/m, `external_url="http://127.0.0.1:${port}"`)
    .replace(/^login_url=.*$/m, 'login_url="/login.html"')
    .replace(/^log_mode=.*$/m, 'log_mode="console"')
    .replace(/^@include.*$/m, `database = { type = "sqlite3"; path = "${database}"; };`)
}

/** Makes the scopes, the plugin and the client, as its administration page would. */
async function setUp({ port, redirectUri }: ProductAddress, api: string, logouts: Logouts): Promise<void> {
  let cookie = ''
  const send = async (method: string, path: string, body: object): Promise<void> => {
    const headers = { 'content-type': 'application/json', cookie }
    const response = await fetch(api + path, { method, headers, body: JSON.stringify(body) })
    cookie = response.headers.getSetCookie()[0]?.split(';', 1)[0] ?? cookie
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }
  await send('POST', '/auth/', ADMIN)
  for (const name of SCOPES) {
    await send('POST', '/scope/', {
      name,
      display_name: name,
      password_required: true,
      password_max_age: 0,
      scheme: {},
    })
  }
  await send('PUT', '/user/admin', {
    name: 'Admin',
    enabled: true,
    scope: ['g_admin', 'g_profile', 'openid', ...SCOPES],
  })
  await send('POST', '/mod/plugin/', {
    module: 'oidc',
    name: 'oidc',
    display_name: 'OIDC',
    parameters: { ...plugin(`http://127.0.0.1:${port}/api/oidc`), ...logouts.plugin },
  })
  await send('POST', '/client/', {
    client_id: 'test-client',
    name: 'test-client',
    confidential: true,
    enabled: true,
    password: SECRET,
    client_secret: SECRET,
    redirect_uri: [redirectUri],
    authorization_type: ['code', 'refresh_token'],
    token_endpoint_auth_method: ['client_secret_basic'],
    scope: [],
    ...logouts.client,
  })
}

function plugin(issuer: string): object {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = { ...privateKey.export({ format: 'jwk' }), kid: '1', alg: 'RS256', use: 'sig' }
  return {
    iss: issuer,
    'jwks-private': JSON.stringify({ keys: [key] }),
    'jwks-uri': '',
    'default-kid': '1',
    'jwt-type': 'rsa',
    'jwt-key-size': '256',
    'access-token-duration': 3600,
    'refresh-token-duration': 86_400,
    'code-duration': 600,
    'refresh-token-rolling': true,
    'refresh-token-one-use': 'always',
    'allow-non-oidc': true,
    'auth-type-code-enabled': true,
    'auth-type-code-revoke-replayed': true,
    'auth-type-token-enabled': false,
    'auth-type-id-token-enabled': true,
    'auth-type-none-enabled': false,
    'auth-type-password-enabled': false,
    'auth-type-client-enabled': false,
    'auth-type-refresh-enabled': true,
    'pkce-allowed': true,
    'pkce-method-plain-allowed': false,
    'pkce-required': true,
    'introspection-revocation-allowed': true,
    'introspection-revocation-allow-target-client': true,
    'oauth-par-allowed': true,
    'oauth-par-required': false,
    'oauth-par-request_uri-prefix': 'urn:ietf:params:oauth:request_uri:',
    'oauth-par-duration': 90,
    'subject-type': 'public',
    'name-claim': 'no',
    'email-claim': 'no',
    'scope-claim': 'no',
    'request-parameter-allow': false,
  }
}
