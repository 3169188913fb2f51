import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { PRODUCTION } from '../support/config/wrong-settings.ts'
import { ALONE } from '../support/server/settings.ts'

/** The warnings that begin with this name. */
function warningsAbout(name: string, settings: Record<string, string>): string[] {
  return readConfig({ ...ALONE, ...settings }).warnings.filter((warning) => warning.startsWith(name))
}

const aboutOrigins = (settings: Record<string, string>): string[] => warningsAbout('FRONTEND_ORIGINS', settings)

await test('FRONTEND_ORIGINS without a place where pages are is warned about', (t) => {
  const [home, elsewhere] = ['http://localhost:5173', 'http://localhost:4000']
  const STATIC_DIR = t.testdir({})
  t.same(aboutOrigins({}), [])
  t.same(aboutOrigins({ FRONTEND_URL: home }), [])
  t.same(aboutOrigins({ FRONTEND_URL: home, FRONTEND_ORIGINS: `${home},${elsewhere}` }), [])
  t.match(aboutOrigins({ FRONTEND_ORIGINS: elsewhere }), [/lacks http:\/\/localhost:3000, to which logins return/])
  t.match(aboutOrigins({ FRONTEND_URL: home, FRONTEND_ORIGINS: elsewhere, STATIC_DIR }), [
    /lacks http:\/\/localhost:5173, to which logins return/,
    /lacks http:\/\/localhost:3000, where STATIC_DIR is served/,
  ])
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
  t.match(warningsAbout('UPSTREAM_BUDGET', { ...shared, WORKERS: '4' }), [
    /^UPSTREAM_BUDGET_INSTANCES is 3, but 4 workers run here alone/,
  ])
  t.same(warningsAbout('UPSTREAM_BUDGET', { ...shared, WORKERS: '4', UPSTREAM_BUDGET_INSTANCES: '4' }), [])
  t.same(warningsAbout('UPSTREAM_BUDGET', { ...shared, WORKERS: '3' }), [])
  t.same(warningsAbout('UPSTREAM_BUDGET', { REDIS_URL: shared.REDIS_URL, WORKERS: '4' }), [], 'there is no budget')
})

const aboutClient = (settings: Record<string, string>): string[] => warningsAbout('CLIENT_AUTH', settings)

await test('a public client is warned about in production, also where there is just no CLIENT_SECRET', async (t) => {
  t.match(aboutClient(PRODUCTION), [/^CLIENT_AUTH is none: a public client, .*RFC 10017/])
  t.match(aboutClient({ ...PRODUCTION, CLIENT_AUTH: 'none' }), [/^CLIENT_AUTH is none/])
  t.match(aboutClient({ ...PRODUCTION, CLIENT_AUTH: 'none', CLIENT_SECRET: 'x' }), [/^CLIENT_AUTH is none/])
  t.same(aboutClient({ ...PRODUCTION, CLIENT_SECRET: 'x' }), [])
  t.same(aboutClient({}), [], 'development')
})

/** The warnings about settings that need another one. */
const unused = (settings: Record<string, string>): string[] =>
  readConfig({ ...ALONE, ...settings }).warnings.filter((warning) => warning.includes('no effect without'))

await test('settings that do nothing without another one are warned about, by name', async (t) => {
  const STATIC_DIR = t.testdir({})
  t.match(unused({ FEED_LINGER_SECONDS: '10', FEED_MAX_SOCKETS: '1' }), [
    /^FEED_MAX_SOCKETS, FEED_LINGER_SECONDS: no effect without PUBLIC_FEED=shared$/,
  ])
  t.match(unused({ PUBLIC_FEED: 'relay', FEED_LINGER_SECONDS: '10' }), [/^FEED_LINGER_SECONDS/])
  t.match(unused({ UPSTREAM_BUDGET_ALONE: '0.5', UPSTREAM_BUDGET_NAME: 'a' }), [
    /^UPSTREAM_BUDGET_NAME, UPSTREAM_BUDGET_ALONE: no effect without UPSTREAM_BUDGET$/,
  ])
  t.match(unused({ STATIC_CSP: 'x' }), [/^STATIC_CSP: no effect without STATIC_DIR$/])
  t.same(unused({ FEED_LINGER_SECONDS: '' }), [], 'an empty value counts as unset')
  t.same(unused({ PUBLIC_FEED: 'shared', FEED_LINGER_SECONDS: '1' }), [])
  t.same(unused({ UPSTREAM_BUDGET: '300/60', UPSTREAM_BUDGET_ALONE: '0.5' }), [])
  t.same(unused({ STATIC_DIR, STATIC_CSP: 'x' }), [])
})

await test('proxies of the environment are warned about, since nothing obeys them, and their addresses are not printed', async (t) => {
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']) {
    const warnings = warningsAbout(name, { [name]: 'http://user:not-to-print@proxy.example:3128' })
    t.match(warnings, [/ is not obeyed: this server connects directly$/], name)
    t.notMatch(warnings.join(), /not-to-print/)
    t.same(warningsAbout(name, { [name]: '' }), [])
  }
  t.same(readConfig({ ...ALONE, NO_PROXY: 'localhost' }).warnings, readConfig(ALONE).warnings)
})
