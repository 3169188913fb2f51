import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Arrival, JarBrowser } from '../browser/jar-browser.ts'
import { hiddenFields, productProcess, type Product, type ProductAddress } from './provider-product.ts'

/** Runs the programs of Debian's package liblemonldap-ng-portal-perl, which the variable PERL finds elsewhere. */
const PERL = process.env['PERL'] ?? '/usr/bin/perl'
/** Version 2.23 has a revocation, and tells of it as of a logout. */
export const REVOKES = process.env['REVOKES'] === 'true'
const ROTATION = '/usr/share/lemonldap-ng/bin/rotateOidcKeys'
const SECRET = 'lemonldap-secret'
/** Users of its demonstration, whose passwords are their names. It remembers the consents of each. */
type User = 'dwho' | 'rtyler'

/** Its portal, with users of its demonstration, PKCE, HTTP Basic, discovery and refresh tokens. */
export const LEMONLDAP: Product = {
  name: 'LemonLDAP::NG',
  isPersistent: true,
  revocation: REVOKES ? 'works' : 'missing',
  start: startLemonldap,
  settings: (provider, gate) => ({
    DISCOVERY: 'true',
    ISSUER: `${provider}/`,
    TOKEN_URL: `${gate}/oauth2/token`,
    ...(REVOKES ? { REVOCATION_URL: `${gate}/oauth2/revoke` } : {}),
    OAUTH_SCOPE: 'openid trade account_manage',
    CLIENT_AUTH: 'client_secret_basic',
    CLIENT_SECRET: SECRET,
  }),
  wrongClient: { CLIENT_SECRET: 'wrong' },
  logIn: async (browser, first) => confirm(browser, await passwordAtLemonldap(browser, first)),
  deny: async (browser, start) => confirm(browser, await passwordAtLemonldap(browser, await start(), 'rtyler'), 'no'),
  // It calls a denial consent_required.
  denial: 'login_failed',
}

/** Sends its form with the password. @returns the question for a consent, or the callback */
function passwordAtLemonldap(browser: JarBrowser, first: Arrival, user: User = 'dwho'): Promise<Arrival> {
  return browser.submit(first, { ...hiddenFields(first), user, password: user })
}

/** What the buttons of its questions do, by a script. A page without a question stays. */
export async function confirm(browser: JarBrowser, question: Arrival, answer: 'yes' | 'no' = 'yes'): Promise<Arrival> {
  const { confirm, ...fields } = hiddenFields(question)
  if (confirm === undefined) return question
  return browser.submit(question, { ...fields, confirm: answer === 'yes' ? confirm : `-${confirm}` })
}

/** Starts its portal. @param client more options of its client */
export function startLemonldap(t: Test, address: ProductAddress, client = {}): ReturnType<typeof productProcess> {
  const { folder, port } = address
  const file = join(folder, 'lemonldap-ng.ini')
  if (!existsSync(file)) configure(address, file, client)
  const portal = '/usr/share/lemonldap-ng/portal/htdocs/index.psgi'
  const words = [
    '/usr/bin/plackup',
    '--host=127.0.0.1',
    `--port=${port}`,
    '--env=production',
    '--no-default-middleware',
  ]
  return productProcess(t, [PERL, ...words, portal], address, { LLNG_DEFAULTCONFFILE: file })
}

/** Runs its program that makes new keys, twice, since from 2.21 on a key is first shown, and then used. The portal sees it soon. */
export function rotateKeys({ folder }: ProductAddress): void {
  const file = join(folder, 'lemonldap-ng.ini')
  for (const _ of ['shown', 'used']) {
    execFileSync(PERL, [ROTATION], { stdio: 'ignore', env: { PATH: process.env['PATH'], LLNG_DEFAULTCONFFILE: file } })
  }
}

function configure({ folder, port, redirectUri }: ProductAddress, file: string, client: object): void {
  const made = (name: string): string => {
    mkdirSync(join(folder, name), { recursive: true })
    return join(folder, name)
  }
  const storage = (name: string): object => ({ Directory: made(name), LockDirectory: made(`${name}/lock`) })
  writeFileSync(
    file,
    `[all]
logLevel=notice
checkTime=1
[configuration]
type=File
dirName=${made('configurations')}
[portal]
templateDir=/usr/share/lemonldap-ng/portal/templates
languages=en
`,
  )
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  const configuration = {
    cfgNum: 1,
    cfgDate: 1,
    portal: `http://127.0.0.1:${port}/`,
    domain: '127.0.0.1',
    authentication: 'Demo',
    userDB: 'Same',
    locationRules: { '127.0.0.1': { default: 'accept' } },
    demoExportedVars: { cn: 'cn', mail: 'mail', uid: 'uid' },
    globalStorage: 'Apache::Session::File',
    globalStorageOptions: storage('sessions'),
    persistentStorage: 'Apache::Session::File',
    persistentStorageOptions: storage('consents'),
    issuerDBOpenIDConnectActivation: 1,
    oidcServicePrivateKeySig: privateKey,
    oidcServicePublicKeySig: publicKey,
    oidcServiceKeyIdSig: 'first',
    oidcRPMetaDataExportedVars: { bff: {} },
    oidcRPMetaDataOptions: {
      bff: {
        oidcRPMetaDataOptionsClientID: 'test-client',
        oidcRPMetaDataOptionsClientSecret: SECRET,
        oidcRPMetaDataOptionsRedirectUris: redirectUri,
        oidcRPMetaDataOptionsPostLogoutRedirectUris: redirectUri.replace('/callback', '/logged-out'),
        oidcRPMetaDataOptionsIDTokenSignAlg: 'RS256',
        oidcRPMetaDataOptionsRequirePKCE: 1,
        oidcRPMetaDataOptionsRefreshToken: 1,
        ...client,
      },
    },
  }
  writeFileSync(join(made('configurations'), 'lmConf-1.json'), JSON.stringify(configuration))
}
