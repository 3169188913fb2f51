import { readFile } from 'node:fs/promises'
import { parseEnv } from 'node:util'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { ambiguousLines } from '../../src/config/env-readers.ts'
import { settingRules } from '../../src/config/settings.ts'
import { PRODUCTION } from '../support/config/wrong-settings.ts'
import { ALONE } from '../support/server/settings.ts'
import { exactly } from '../support/exactly.ts'

/** The warnings that match. */
function warningsLike(pattern: RegExp, settings: Readonly<Record<string, string>>): string[] {
  return readConfig({ ...ALONE, ...settings }).warnings.filter((warning) => pattern.test(warning))
}

const warningsAbout = (name: string, settings: Record<string, string>): string[] =>
  warningsLike(new RegExp(`^${name}`), settings)
const aboutOrigins = (settings: Record<string, string>): string[] => warningsAbout('FRONTEND_ORIGINS', settings)

await test('FRONTEND_ORIGINS without a place where pages are is warned about', (t) => {
  const [home, elsewhere] = ['http://localhost:5173', 'http://localhost:4000']
  const STATIC_DIR = t.testdir({})
  t.same(aboutOrigins({}), [])
  t.same(aboutOrigins({ FRONTEND_URL: home }), [])
  t.same(aboutOrigins({ FRONTEND_URL: home, FRONTEND_ORIGINS: `${home},${elsewhere}` }), [])
  t.match(
    aboutOrigins({ FRONTEND_ORIGINS: elsewhere }),
    exactly(/lacks http:\/\/localhost:3000, to which logins return/),
  )
  t.match(
    aboutOrigins({ FRONTEND_URL: home, FRONTEND_ORIGINS: elsewhere, STATIC_DIR }),
    exactly(
      /lacks http:\/\/localhost:5173, to which logins return/,
      /lacks http:\/\/localhost:3000, where STATIC_DIR is served/,
    ),
  )
  t.end()
})

await test('OPS_HOST is HOST unless it is set, and a public one is warned about where there is an OPS_TOKEN', async (t) => {
  const subject = { IDENTITY_PATH: '/me', IDENTITY_POINTER: '/id', OPS_TOKEN: 'a-token-of-at-least-32-characters' }
  const read = (settings: Record<string, string>) => readConfig({ ...ALONE, ...subject, ...settings })
  const warns = (settings: Record<string, string>): boolean =>
    warningsAbout('OPS_TOKEN', { ...subject, ...settings }).length > 0
  t.equal(read({ HOST: '10.0.0.1' }).listen.opsHost, '10.0.0.1')
  t.equal(read({ HOST: '0.0.0.0', OPS_HOST: '127.0.0.1' }).listen.opsHost, '127.0.0.1')
  for (const host of ['0.0.0.0', '::', '0:0:0:0:0:0:0:0', '::ffff:0.0.0.0', '203.0.113.9', '2001:db8::1', '172.32.0.1'])
    t.ok(warns({ HOST: host }), host)
  for (const host of [
    '127.0.0.1',
    '::1',
    '10.1.2.3',
    '172.31.0.1',
    '192.168.0.1',
    'fd00::1',
    'fe80::1%eth0',
    'localhost',
    'node-1.inner_net',
  ]) {
    t.notOk(warns({ HOST: '0.0.0.0', OPS_HOST: host }), host)
  }
  t.notOk(warns({ OPS_TOKEN: '' }))
})

await test('HOST and OPS_HOST are refused as numbers that stand for an address, which may be a public one', async (t) => {
  const numbers = ['0', '0x0', '0X0.0', '00', '2130706433', '127.1', '10.0.0.256']
  for (const host of [...numbers, '[::1]', '0.0.0.0 ', 'a b', 'http://a']) {
    for (const name of ['HOST', 'OPS_HOST']) {
      t.throws(
        () => readConfig({ ...ALONE, [name]: host }),
        { message: new RegExp(`\\b${name} must be an IP address`) },
        `${name}=${host}`,
      )
    }
  }
  t.equal(readConfig({ ...ALONE, HOST: 'node-1.inner' }).listen.opsHost, 'node-1.inner')
})

await test('more workers than the budget is divided among are warned about', async (t) => {
  const shared = { REDIS_URL: 'redis://127.0.0.1:6379', UPSTREAM_BUDGET: '300/60' }
  t.match(
    warningsAbout('UPSTREAM_BUDGET', { ...shared, WORKERS: '4' }),
    exactly(/^UPSTREAM_BUDGET_INSTANCES is 3, but 4 workers run here alone/),
  )
  t.same(warningsAbout('UPSTREAM_BUDGET', { ...shared, WORKERS: '4', UPSTREAM_BUDGET_INSTANCES: '4' }), [])
  t.same(warningsAbout('UPSTREAM_BUDGET', { ...shared, WORKERS: '3' }), [])
  t.same(warningsAbout('UPSTREAM_BUDGET', { REDIS_URL: shared.REDIS_URL, WORKERS: '4' }), [], 'there is no budget')
})

const aboutClient = (settings: Record<string, string>): string[] => warningsAbout('CLIENT_AUTH', settings)

await test('a public client is warned about in production, also where there is just no CLIENT_SECRET', async (t) => {
  t.match(aboutClient(PRODUCTION), exactly(/^CLIENT_AUTH is none: a public client, .*RFC 10017/))
  t.match(aboutClient({ ...PRODUCTION, CLIENT_AUTH: 'none' }), exactly(/^CLIENT_AUTH is none/))
  t.match(aboutClient({ ...PRODUCTION, CLIENT_AUTH: 'none', CLIENT_SECRET: 'x' }), exactly(/^CLIENT_AUTH is none/))
  t.same(aboutClient({ ...PRODUCTION, CLIENT_SECRET: 'x' }), [])
  t.same(aboutClient({}), [], 'development')
})

const unused = (settings: Record<string, string>): string[] => warningsLike(/no effect without/, settings)

await test('settings that do nothing without another one are warned about, by name', async (t) => {
  const STATIC_DIR = t.testdir({})
  t.match(
    unused({ FEED_LINGER_SECONDS: '10', FEED_MAX_SOCKETS: '1' }),
    exactly(/^FEED_MAX_SOCKETS, FEED_LINGER_SECONDS: no effect without PUBLIC_FEED=shared$/),
  )
  t.match(unused({ PUBLIC_FEED: 'relay', FEED_LINGER_SECONDS: '10' }), exactly(/^FEED_LINGER_SECONDS/))
  t.match(
    unused({ UPSTREAM_BUDGET_ALONE: '0.5', UPSTREAM_BUDGET_NAME: 'a' }),
    exactly(/^UPSTREAM_BUDGET_NAME, UPSTREAM_BUDGET_ALONE: no effect without UPSTREAM_BUDGET$/),
  )
  t.match(unused({ STATIC_CSP: 'x' }), exactly(/^STATIC_CSP: no effect without STATIC_DIR$/))
  t.same(unused({ FEED_LINGER_SECONDS: '' }), [], 'an empty value counts as unset')
  t.same(unused({ PUBLIC_FEED: 'shared', FEED_LINGER_SECONDS: '1' }), [])
  t.same(unused({ UPSTREAM_BUDGET: '300/60', UPSTREAM_BUDGET_ALONE: '0.5' }), [])
  t.same(unused({ UPSTREAM_BUDGET_INSTANCES: '16' }), [], 'the number of processes is a fact')
  t.same(unused({ STATIC_DIR, STATIC_CSP: 'x' }), [])
})

await test('proxies of the environment are warned about, since nothing obeys them, and their addresses are not printed', async (t) => {
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']) {
    const warnings = warningsAbout(name, { [name]: 'http://user:not-to-print@proxy.example:3128' })
    t.match(warnings, exactly(/ is not obeyed: this server connects directly$/), name)
    t.notMatch(warnings.join(), /not-to-print/)
    t.same(warningsAbout(name, { [name]: '' }), [])
  }
  t.same(readConfig({ ...ALONE, NO_PROXY: 'localhost' }).warnings, readConfig(ALONE).warnings)
})

/** The warnings about names of variables. */
const namesWarnedAbout = (names: readonly string[]): string[] => {
  const variables = Object.fromEntries(names.map((name) => [name, 'a-value-not-to-print']))
  return warningsLike(/is not a setting|is not read/, { ...variables, ...ALONE })
}

await test('a variable whose name is almost that of a setting is warned about, without its value', (t) => {
  t.same(
    namesWarnedAbout(['SESSION_SECRET', 'UPSTREAM_BUGDET', 'REDIS_URI', 'OPS_TOKEN_FIEL', 'MAX_SESSIONS_PER_SUBJET']),
    [
      'SESSION_SECRET is not a setting: did you mean SESSION_SECRETS?',
      'UPSTREAM_BUGDET is not a setting: did you mean UPSTREAM_BUDGET?',
      'REDIS_URI is not a setting: did you mean REDIS_URL?',
      'OPS_TOKEN_FIEL is not a setting: did you mean OPS_TOKEN_FILE?',
      'MAX_SESSIONS_PER_SUBJET is not a setting: did you mean MAX_SESSIONS_PER_SUBJECT?',
    ],
  )
  t.match(
    namesWarnedAbout(['CLIENT_ID_FILE']),
    exactly(/^CLIENT_ID_FILE is not read: only SESSION_SECRETS, .* can be in a file$/),
  )
  t.end()
})

await test('a start that fails for want of a setting tells which variable may be meant for it', (t) => {
  t.throws(() => readConfig({ ...ALONE, CLIENT_ID: '', CLIENT_ID_: 'never-to-be-printed' }), {
    message:
      '1 setting(s) are wrong:\n  CLIENT_ID is required: printable ASCII, and not blank\nCLIENT_ID_ is not a setting: did you mean CLIENT_ID?',
  })
  t.end()
})

await test('no setting is taken for another, and the rest of an environment is left alone', (t) => {
  const usual = ['HOME', 'HOSTNAME', 'PATH', 'PWD', 'USER', 'LANG', 'TERM', 'SHLVL', 'LOGNAME', 'MAIL', 'EDITOR', 'TZ']
  const platform = ['NODE_ENV', 'NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS', 'npm_config_cache', 'REDIS_MAXMEMORY']
  const cluster = ['KUBERNETES_PORT', 'KUBERNETES_SERVICE_HOST', 'REDIS_PORT', 'REDIS_SERVICE_HOST', 'INVOCATION_ID']
  t.same(namesWarnedAbout([...usual, ...platform, ...cluster]), [])
  // A typing error in one name must not be taken for another setting that differs as little.
  const names = Object.keys(settingRules)
  for (const name of names) {
    const misspelt = `${name.slice(0, -1)}~`
    if (misspelt.length >= 6)
      t.same(namesWarnedAbout([misspelt]), [`${misspelt} is not a setting: did you mean ${name}?`])
  }
  t.end()
})

await test('IDEMPOTENCY_TTL_SECONDS below the time for which the package repeats a remembered order is warned about', async (t) => {
  const source = await readFile(new URL('../../client/src/orders/remembered-key.ts', import.meta.url), 'utf8')
  const packageSeconds = Number(/MAX_AGE_MS = ([\d_]+)/.exec(source)?.[1]?.replaceAll('_', '')) / 1000
  const warnings = (seconds: number): string[] =>
    warningsAbout('IDEMPOTENCY_TTL_SECONDS', { IDEMPOTENCY_TTL_SECONDS: String(seconds) })
  t.match(warnings(packageSeconds - 1), exactly(/3600 s.*remember.*twice/))
  t.match(warnings(1), exactly(/3600 s/))
  t.same(warnings(packageSeconds), [])
  t.same(warningsAbout('IDEMPOTENCY_TTL_SECONDS', {}), [])
})

await test('a value that another reader of .env would read differently is warned about, without the value', (t) => {
  const about = (name: string, value: string): string[] => warningsAbout(name, { [name]: value })
  const secret = 'a-client-secret-of-32-characters'
  t.same(about('CLIENT_SECRET', secret), [])
  t.same(warningsLike(/readers of \.env/, { STATIC_CSP: "default-src 'self'; img-src 'self'" }), [])
  for (const [value, what] of [
    [`"${secret}"`, 'quotes at its ends'],
    [`'${secret}'`, 'quotes at its ends'],
    [`${secret} `, 'white space at an end'],
    [`${secret}#x`, 'a #'],
    [`${secret} # the old one`, 'a #'],
    [`${secret}$word`, 'a $ before a name'],
    [`${secret}\${word}`, 'a $ before a name'],
    [`"${secret}#$x"`, 'quotes at its ends and a # and a $ before a name'],
  ] as const) {
    t.same(
      about('CLIENT_SECRET', value),
      [
        `CLIENT_SECRET has ${what}, which readers of .env read differently: put it into a file, which CLIENT_SECRET_FILE names`,
      ],
      value,
    )
  }
  for (const value of [`${secret}$`, `${secret}$1`, `"${secret}`]) t.same(about('CLIENT_SECRET', value), [], value)
  t.match(
    about('SERVICE_APP_ID', '"app"'),
    exactly(/^SERVICE_APP_ID has quotes at its ends, .*: see docs\/operating\/install\.md$/),
  )
  const file = t.testdir({ secret: `"${secret}#$x"` })
  t.same(warningsAbout('CLIENT_SECRET', { CLIENT_SECRET_FILE: `${file}/secret` }), [], 'a file has one reader')
  t.throws(() => readConfig({ ...ALONE, AUTH_URL: '"http://127.0.0.1:1"' }), /\nAUTH_URL has quotes at its ends/)
  t.end()
})

await test('a setting that Node reads from .env as another reader would not is warned about once, and no other', (t) => {
  const text = [
    'CLIENT_SECRET=abc#def',
    'CLIENT_ID=a',
    'SESSION_SECRETS=as-everybody-reads-it',
    'API_URL=',
    'export CLIENT_ID = a-b#c',
    'SERVICE_APP_ID=app # a comment',
    'LEGACY_APP_ID= # none',
    'STATIC_CSP="a#b"',
    "OAUTH_SCOPE='a#b'",
    'HOST=`a#b`',
    '# PORT=1#2',
    'ISSUER=set-before#x',
    'HOME=a#b',
    'HOME="a"',
    'APP_ID_HEADER="App-Id"',
    "WS_URL=''",
    'AUTH_URL=http://127.0.0.1:1 \t',
    'REDIS_URL="redis://$host"',
  ].join('\n')
  const environment: Record<string, string | undefined> = { ...parseEnv(text), ISSUER: 'another' }
  t.equal(environment['CLIENT_SECRET'], 'abc', 'as Node reads it')
  t.same(ambiguousLines(text, environment), [
    'CLIENT_SECRET ends before a # in .env: put it into a file, which CLIENT_SECRET_FILE names',
    'CLIENT_ID ends before a # in .env: see docs/operating/install.md',
    'SERVICE_APP_ID has a comment after it in .env, which docker run keeps: see docs/operating/install.md',
    'LEGACY_APP_ID has a comment after it in .env, which docker run keeps: see docs/operating/install.md',
    'APP_ID_HEADER has quotes at its ends in .env, which docker run keeps: see docs/operating/install.md',
    'WS_URL has quotes at its ends in .env, which docker run keeps: see docs/operating/install.md',
    'AUTH_URL has white space at an end in .env, which docker run keeps: see docs/operating/install.md',
  ])
  for (const name of ['STATIC_CSP', 'OAUTH_SCOPE']) {
    const { [name]: value = '' } = environment
    t.match(warningsLike(/readers of \.env/, { [name]: value }).join(), name, 'the value itself tells')
  }
  t.end()
})
