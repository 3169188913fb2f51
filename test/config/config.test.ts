import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { secretTexts } from '../../src/config/secrets.ts'
import { workerEnvironment } from '../../src/config/worker-environment.ts'
import { errorOf, PRODUCTION, wrongOnes } from '../support/config/wrong-settings.ts'
import { ALONE } from '../support/server/settings.ts'

const SCENARIOS: [condition: string, settings: Record<string, string>, named: string[]][] = [
  [
    'nothing is set',
    {},
    ['PUBLIC_URL', 'AUTH_URL', 'API_URL', 'WS_URL', 'CLIENT_ID', 'SESSION_SECRETS', 'REDIS_URL', 'TRUST_PROXY'],
  ],
  [
    'production lacks the settings it requires',
    { ...PRODUCTION, SESSION_SECRETS: '', REDIS_URL: '', TRUST_PROXY: '' },
    ['SESSION_SECRETS', 'REDIS_URL', 'TRUST_PROXY'],
  ],
  [
    'production uses unencrypted addresses and cookies',
    {
      ...PRODUCTION,
      PUBLIC_URL: 'HTTP://bff.example',
      AUTH_URL: 'http://a.example',
      API_URL: 'http://a.example',
      WS_URL: 'WS://a.example',
      DEV_INSECURE_COOKIES: '1',
    },
    ['PUBLIC_URL', 'AUTH_URL', 'API_URL', 'WS_URL', 'DEV_INSECURE_COOKIES'],
  ],
  [
    'values are of the wrong type or out of range',
    {
      ...ALONE,
      PORT: '99999',
      API_URL: 'ftp://x',
      SESSION_IDLE_SECONDS: '1.5',
      TRUST_PROXY: 'all',
      OTP_URL_POINTER: 'x',
      LOG_LEVEL: 'loud',
      RELAYS_KEEP_SESSION: 'maybe',
      MAX_BODY_BYTES: '1e3',
      STATIC_DIR: '/nowhere',
      WORKERS: '3',
    },
    [
      'PORT',
      'API_URL',
      'SESSION_IDLE_SECONDS',
      'TRUST_PROXY',
      'OTP_URL_POINTER',
      'LOG_LEVEL',
      'RELAYS_KEEP_SESSION',
      'MAX_BODY_BYTES',
      'STATIC_DIR',
      'WORKERS',
    ],
  ],
  [
    'values are blank',
    { ...ALONE, CLIENT_ID: '  ', SERVICE_APP_ID: ' ', STATIC_CSP: ' ' },
    ['CLIENT_ID', 'SERVICE_APP_ID', 'STATIC_CSP'],
  ],
  [
    'a secret is too short',
    { ...PRODUCTION, SESSION_SECRETS: `${PRODUCTION.SESSION_SECRETS},short` },
    ['SESSION_SECRETS'],
  ],
  [
    'a secret is set twice, or its file is missing',
    { ...PRODUCTION, REDIS_URL_FILE: '/nowhere', CLIENT_SECRET_FILE: '/nowhere' },
    ['REDIS_URL', 'REDIS_URL_FILE', 'CLIENT_SECRET_FILE'],
  ],
  [
    'a required secret is in a file that cannot be read',
    {
      ...PRODUCTION,
      SESSION_SECRETS: '',
      SESSION_SECRETS_FILE: '/nowhere',
      CLIENT_AUTH: 'client_secret_post',
      CLIENT_SECRET_FILE: '/nowhere',
    },
    ['SESSION_SECRETS_FILE', 'CLIENT_SECRET_FILE'],
  ],
  ...[
    'Authorization',
    'COOKIE',
    'Host',
    'content-length',
    'Transfer-Encoding',
    'Idempotency-Key',
    'X-Request-Id',
    'a b',
  ].map((APP_ID_HEADER): (typeof SCENARIOS)[number] => [
    `the header of the application id would be ${APP_ID_HEADER}`,
    { ...ALONE, APP_ID_HEADER },
    ['APP_ID_HEADER'],
  ]),
  ['subjects are to be logged that nobody asks for', { ...ALONE, LOG_SUBJECT: 'plain' }, ['LOG_SUBJECT']],
  ['several processes would keep sessions in memory', { ...ALONE, WORKERS: '2' }, ['WORKERS']],
  ['both listeners would share one port', { ...ALONE, PORT: '3999', OPS_PORT: '3999' }, ['OPS_PORT']],
  [
    'PUBLIC_URL is that of production but wrong',
    { ...ALONE, PUBLIC_URL: 'https://bff.example/app' },
    ['PUBLIC_URL', 'AUTH_URL', 'API_URL', 'WS_URL', 'SESSION_SECRETS', 'REDIS_URL', 'TRUST_PROXY'],
  ],
  [
    'less may wait for all sockets than for one of them',
    { ...ALONE, MAX_WAITING_BYTES: '1048576', MAX_BUFFERED_BYTES: '1048577' },
    ['MAX_WAITING_BYTES'],
  ],
  ['hardly anything may wait', { ...ALONE, MAX_WAITING_BYTES: '65536' }, ['MAX_WAITING_BYTES']],
  ['no body would be allowed, which Fastify refuses', { ...ALONE, MAX_BODY_BYTES: '0' }, ['MAX_BODY_BYTES']],
  ...['0.0.0.0/0', '::/0', '10.0.0.0/8,1.2.3.4/00'].map((TRUST_PROXY): (typeof SCENARIOS)[number] => [
    `TRUST_PROXY would be ${TRUST_PROXY}`,
    { ...ALONE, TRUST_PROXY },
    ['TRUST_PROXY'],
  ]),
  ...[' ', '\r', '?', '#', '\\v1', '/a b'].map((end): (typeof SCENARIOS)[number] => [
    `addresses end with ${JSON.stringify(end)}, so that no path can be appended to them`,
    { ...ALONE, AUTH_URL: `http://a.example${end}`, API_URL: `http://a.example${end}`, WS_URL: `ws://a.example${end}` },
    ['AUTH_URL', 'API_URL', 'WS_URL'],
  ]),
  ['PUBLIC_URL is not a URL', { ...ALONE, PUBLIC_URL: 'localhost' }, ['PUBLIC_URL']],
  [
    'the wait for the balancer is longer than the whole drain',
    { ...ALONE, DRAIN_SECONDS: '5', DRAIN_WAIT_SECONDS: '6' },
    ['DRAIN_WAIT_SECONDS'],
  ],
  [
    'settings need a subject that there is not',
    { ...ALONE, OPS_TOKEN: 'not-to-print-'.repeat(3), MAX_SESSIONS_PER_SUBJECT: '1', LOG_SUBJECT: 'plain' },
    ['MAX_SESSIONS_PER_SUBJECT', 'LOG_SUBJECT'],
  ],
  ['IDENTITY_PATH is set alone', { ...ALONE, IDENTITY_PATH: '/me' }, ['IDENTITY_POINTER']],
  ['IDENTITY_POINTER is set alone', { ...ALONE, IDENTITY_POINTER: '/id' }, ['IDENTITY_PATH']],
  [
    'the identity and the token are wrong',
    { ...ALONE, IDENTITY_PATH: '/me?x', IDENTITY_POINTER: 'id', OPS_TOKEN: 'short', LOG_SUBJECT: 'yes' },
    ['IDENTITY_PATH', 'IDENTITY_POINTER', 'OPS_TOKEN', 'LOG_SUBJECT'],
  ],
  [
    'only the path of the identity is wrong',
    {
      ...ALONE,
      IDENTITY_PATH: '/me?x',
      IDENTITY_POINTER: '/id',
      OPS_TOKEN: 'not-to-print-'.repeat(3),
      MAX_SESSIONS_PER_SUBJECT: '1',
      LOG_SUBJECT: 'plain',
    },
    ['IDENTITY_PATH'],
  ],
  [
    'only the pointer of the identity is wrong',
    { ...ALONE, IDENTITY_PATH: '/me', IDENTITY_POINTER: 'id' },
    ['IDENTITY_POINTER'],
  ],
  ['an origin has a wildcard', { ...ALONE, FRONTEND_ORIGINS: 'https://*.example' }, ['FRONTEND_ORIGINS']],
  ['PUBLIC_URL has a path', { ...ALONE, PUBLIC_URL: 'http://localhost:3000/app' }, ['PUBLIC_URL']],
]

for (const [condition, settings, named] of SCENARIOS) {
  await test(`readConfig names every wrong setting and prints no value if ${condition}`, async (t) => {
    t.same(wrongOnes(settings), named.toSorted())
    t.notMatch(errorOf(settings)?.message, /never-be-printed|not-to-print|short/)
  })
}

await test('readConfig names STATIC_DIR if nobody can tell whether it is a folder', async (t) => {
  const folder = t.testdir({ loop: t.fixture('symlink', 'loop') })
  t.same(wrongOnes({ ...ALONE, STATIC_DIR: join(folder, 'loop') }), ['STATIC_DIR'])
})

await test('readConfig refuses a secret in a file of bytes that are no text', async (t) => {
  const folder = t.testdir()
  const file = join(folder, 'secret')
  // As text with replacement characters it would be long enough, and guessed more easily.
  writeFileSync(file, Buffer.alloc(40, 0xff))
  const settings = { ...PRODUCTION, SESSION_SECRETS: '', SESSION_SECRETS_FILE: file }
  t.same(wrongOnes(settings), ['SESSION_SECRETS_FILE'])
  t.match(errorOf(settings)?.message, /SESSION_SECRETS_FILE must name a file of UTF-8 text/)
})

await test('readConfig accepts the minimal settings of development and production', async (t) => {
  t.equal(errorOf(ALONE), undefined)
  t.equal(errorOf(PRODUCTION), undefined)
  t.equal(errorOf({ ...PRODUCTION, WORKERS: 'auto', DRAIN_WAIT_SECONDS: '20' }), undefined)
})

await test('OTP_HOSTS takes names and addresses with or without a port, and nothing that no URL can name', (t) => {
  for (const host of [
    'otp.example',
    'OTP.example:443',
    'localhost:1',
    'a--b.example.',
    '10.0.0.1:65535',
    '[::1]',
    '[::1]:8443',
  ]) {
    t.same(wrongOnes({ ...ALONE, OTP_HOSTS: `${host}, other.example` }), [], host)
  }
  for (const host of [
    'otp.example:99999',
    'a:0',
    '..',
    '.a',
    'a..b',
    '-x',
    'a.-x',
    '[::1]:70000',
    '[:::]',
    '10.0.0.256',
    'a:',
    'a/b',
  ]) {
    t.same(wrongOnes({ ...ALONE, OTP_HOSTS: `other.example,${host}` }), ['OTP_HOSTS'], host)
  }
  t.end()
})

await test('DRAIN_WAIT_SECONDS defaults to 5 in production, at most a quarter of DRAIN_SECONDS, and to 0 in development', async (t) => {
  t.equal(readConfig(ALONE).drainWaitMs, 0)
  t.equal(readConfig(PRODUCTION).drainWaitMs, 5000)
  t.equal(readConfig({ ...PRODUCTION, DRAIN_SECONDS: '8' }).drainWaitMs, 2000)
  t.equal(readConfig({ ...PRODUCTION, DRAIN_SECONDS: '8', DRAIN_WAIT_SECONDS: '7' }).drainWaitMs, 7000)
})

await test('A worker has the configuration of its supervisor, but not the token of the operators', (t) => {
  const file = join(t.testdir({ token: 'a-token-of-at-least-32-characters\n' }), 'token')
  const subject = { IDENTITY_PATH: '/me', IDENTITY_POINTER: '/id' }
  for (const token of [{ OPS_TOKEN: 'a-token-of-at-least-32-characters' }, { OPS_TOKEN_FILE: file }]) {
    const settings = { ...PRODUCTION, ...subject, ...token, CLIENT_SECRET: 'a-client-secret' }
    const config = readConfig(settings)
    t.equal(config.ops.token?.current, 'a-token-of-at-least-32-characters')
    const environment: Record<string, string> = { ...settings, ...workerEnvironment(config) }
    const worker = readConfig(environment)
    t.notOk(JSON.stringify(environment).includes('a-token-of-at-least'), 'it is nowhere in the environment')
    const parts = (each: typeof config) => ({
      ...each.oauth,
      identity: each.identity,
      ...secretTexts(each),
      OPS_TOKEN: '',
    })
    t.same(parts(worker), parts(config))
    t.same(worker.ops, { token: undefined, hasOperators: true }, 'but it knows that there is one')
  }
  const alone = readConfig(PRODUCTION)
  t.notOk(readConfig({ ...PRODUCTION, ...workerEnvironment(alone) }).ops.hasOperators)
  t.end()
})
