import { test } from 'tap'
import { ConfigError, readConfig } from '../../src/config/config.ts'
import { ALONE } from '../support/settings.ts'

const PRODUCTION = {
  PUBLIC_URL: 'https://bff.example',
  AUTH_URL: 'https://auth.example',
  API_URL: 'https://api.example',
  WS_URL: 'wss://api.example',
  CLIENT_ID: 'client',
  SESSION_SECRETS: 'a-secret-that-must-never-be-printed-anywhere',
  REDIS_URL: 'redis://:password-not-to-print@redis.example',
  TRUST_PROXY: '1',
}

const SCENARIOS: [what: string, settings: Record<string, string>, named: string[]][] = [
  [
    'nothing is set',
    {},
    [
      'PUBLIC_URL',
      'AUTH_URL',
      'API_URL',
      'WS_URL',
      'CLIENT_ID',
      'SESSION_SECRETS',
      'REDIS_URL',
      'TRUST_PROXY',
    ],
  ],
  [
    'production lacks its own',
    { ...PRODUCTION, SESSION_SECRETS: '', REDIS_URL: '', TRUST_PROXY: '' },
    ['SESSION_SECRETS', 'REDIS_URL', 'TRUST_PROXY'],
  ],
  [
    'production is not encrypted',
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
    'values are of the wrong kind',
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
    'a secret is too short',
    { ...PRODUCTION, SESSION_SECRETS: `${PRODUCTION.SESSION_SECRETS},short` },
    ['SESSION_SECRETS'],
  ],
  [
    'a secret is given twice, or its file is not there',
    { ...PRODUCTION, REDIS_URL_FILE: '/nowhere', CLIENT_SECRET_FILE: '/nowhere' },
    ['REDIS_URL', 'REDIS_URL_FILE', 'CLIENT_SECRET_FILE'],
  ],
  ['several processes would hold sessions in memory', { ...ALONE, WORKERS: '2' }, ['WORKERS']],
  ['both listeners would have one port', { ...ALONE, PORT: '3999', OPS_PORT: '3999' }, ['OPS_PORT']],
  [
    'PUBLIC_URL is of production, though wrong',
    { ...ALONE, PUBLIC_URL: 'https://bff.example/app' },
    ['PUBLIC_URL', 'AUTH_URL', 'API_URL', 'WS_URL', 'SESSION_SECRETS', 'REDIS_URL', 'TRUST_PROXY'],
  ],
  ['PUBLIC_URL is no address', { ...ALONE, PUBLIC_URL: 'localhost' }, ['PUBLIC_URL']],
  [
    'the wait for the balancer is longer than the whole drain',
    { ...ALONE, DRAIN_SECONDS: '5', DRAIN_WAIT_SECONDS: '6' },
    ['DRAIN_WAIT_SECONDS'],
  ],
  ['PUBLIC_URL has a path', { ...ALONE, PUBLIC_URL: 'http://localhost:3000/app' }, ['PUBLIC_URL']],
]

for (const [what, settings, named] of SCENARIOS) {
  await test(`every problem is told, and no value, when ${what}`, async (t) => {
    const error = problemOf(settings)
    t.same(new Set(error?.problems.map(({ setting }) => setting)), new Set(named))
    t.notMatch(error?.message, /never-be-printed|not-to-print|short/)
  })
}

function problemOf(settings: Record<string, string>): ConfigError | undefined {
  try {
    readConfig(settings)
    return undefined
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
}

await test('what is right as it is needs nothing more', async (t) => {
  t.equal(problemOf(ALONE), undefined)
  t.equal(problemOf(PRODUCTION), undefined)
  t.equal(problemOf({ ...PRODUCTION, WORKERS: 'auto', DRAIN_WAIT_SECONDS: '20' }), undefined)
})

await test('a balancer is waited for in production, and never for longer than a quarter of the drain', async (t) => {
  t.equal(readConfig(ALONE).drainWaitMs, 0)
  t.equal(readConfig(PRODUCTION).drainWaitMs, 5000)
  t.equal(readConfig({ ...PRODUCTION, DRAIN_SECONDS: '8' }).drainWaitMs, 2000)
  t.equal(readConfig({ ...PRODUCTION, DRAIN_SECONDS: '8', DRAIN_WAIT_SECONDS: '7' }).drainWaitMs, 7000)
})
