import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { readConfig, type Config } from '../../src/config/config.ts'
import { SecretFiles } from '../../src/config/secret-files.ts'
import { secretFiles, secretTexts, type SecretSetting } from '../../src/config/secrets.ts'
import { ALONE } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'

const OLD = 'an-old-secret-of-thirty-two-bytes-at-least'
const NEW = 'a-new-secret-of-thirty-two-bytes-at-least'
const TOKEN = 'a-token-of-operators-of-32-characters'
const READ_MS = 15

interface Line {
  readonly setting: string
  readonly reason?: string
}

/** Files with these texts, the configuration of a server that is started with them, and what its log says. */
async function filesOf(
  t: Test,
  texts: Partial<Record<SecretSetting, string>>,
  { settings = {}, tryRedis = async () => undefined }: Options = {},
) {
  const dir = t.testdir({})
  const pathOf = (name: string): string => join(dir, name)
  for (const [name, text] of Object.entries(texts)) writeFileSync(pathOf(name), text)
  const named = Object.fromEntries(Object.keys(texts).map((name) => [`${name}_FILE`, pathOf(name)]))
  const environment = { ...ALONE, ...settings, ...named }
  const config = readConfig(environment)
  const lines: { is: 'info' | 'warn'; details: Line }[] = []
  const files = new SecretFiles(secretFiles(environment, config), environment, config, {
    log: {
      info: (details) => void lines.push({ is: 'info', details: details as Line }),
      warn: (details) => void lines.push({ is: 'warn', details: details as Line }),
    },
    tryRedis,
    readMs: READ_MS,
  })
  t.teardown(() => files.close())
  return {
    dir,
    config,
    files,
    lines,
    write: (name: SecretSetting, text: string | Buffer) => writeFileSync(pathOf(name), text),
    remove: (name: SecretSetting) => rmSync(pathOf(name)),
    /** Waits until the reason for which a file is refused matches. */
    refused: (reason: RegExp) => until(() => files.warnings.some((each) => reason.test(each)), `a warning ${reason}`),
    accepted: () => until(() => files.warnings.length === 0, 'no warning'),
  }
}

interface Options {
  readonly settings?: Record<string, string>
  readonly tryRedis?: (url: string, present: string) => Promise<string | undefined>
}

function pem(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

const secretsOf = ({ secrets }: Config): readonly string[] => secrets.current

await test('SESSION_SECRETS_FILE: the three steps of a rotation are taken, each with a line that names no secret', async (t) => {
  const { config, write, lines, files } = await filesOf(t, { SESSION_SECRETS: OLD })
  for (const [text, list] of [
    [`${OLD},${NEW}\n`, [OLD, NEW]],
    [`${NEW}, ${OLD}`, [NEW, OLD]],
    [NEW, [NEW]],
  ] as const) {
    write('SESSION_SECRETS', text)
    await until(() => secretsOf(config).join(' ') === list.join(' '), `the secrets of “${text}”`)
  }
  const line = { is: 'info', details: { setting: 'SESSION_SECRETS' } }
  t.same(lines, [line, line, line])
  t.same(files.states, [['SESSION_SECRETS', false]])
})

await test('SESSION_SECRETS_FILE: a list without the secret that signs, and what a start would refuse, keeps the old one', async (t) => {
  const { config, write, remove, lines, files, refused, accepted } = await filesOf(t, { SESSION_SECRETS: OLD })
  const wrong: readonly (readonly [text: string, reason: RegExp])[] = [
    [NEW, /must keep the secret that signs at present: append the new one/],
    ['', /must be comma-separated secrets/],
    [`${OLD},`, /must be comma-separated secrets/],
    [`${OLD},short`, /must be comma-separated secrets of at least 32 bytes/],
    [`${OLD},${OLD}`, /all different/],
    [`${OLD}\n${NEW}`, /white space/],
  ]
  for (const [text, reason] of wrong) {
    write('SESSION_SECRETS', text)
    await refused(reason)
    t.same(secretsOf(config), [OLD], text)
    t.same(files.states, [['SESSION_SECRETS', true]])
    write('SESSION_SECRETS', OLD)
    await accepted()
  }
  remove('SESSION_SECRETS')
  await refused(/cannot be read/)
  write('SESSION_SECRETS', OLD)
  await accepted()
  write('SESSION_SECRETS', Buffer.from(`${OLD},${'\xff'.repeat(40)}`, 'latin1'))
  await refused(/cannot be read as text/)
  t.same(secretsOf(config), [OLD])
  write('SESSION_SECRETS', `${OLD},${NEW}`)
  await until(() => secretsOf(config).length === 2, 'a good list after a missing file')
  const text = JSON.stringify([lines, files.warnings])
  t.notMatch(text, OLD)
  t.notMatch(text, NEW)
})

await test('A file that is replaced as in a Kubernetes volume is taken, and one that keeps changing is not', async (t) => {
  const dir = t.testdir({ '..first': { secrets: OLD }, '..second': { secrets: `${OLD},${NEW}` } })
  symlinkSync('..first', join(dir, '..data'))
  symlinkSync(join('..data', 'secrets'), join(dir, 'secrets'))
  const environment = { ...ALONE, SESSION_SECRETS_FILE: join(dir, 'secrets') }
  const config = readConfig(environment)
  const log = { info: () => undefined, warn: () => undefined }
  const files = new SecretFiles(secretFiles(environment, config), environment, config, {
    log,
    tryRedis: async () => undefined,
    readMs: READ_MS,
  })
  t.teardown(() => files.close())
  symlinkSync('..second', join(dir, '..data_tmp'))
  renameSync(join(dir, '..data_tmp'), join(dir, '..data'))
  await until(() => secretsOf(config).length === 2, 'the secrets of the second folder')

  // Another text at every look, each of which is a valid list.
  mkdirSync(join(dir, '..third'))
  let writes = 0
  const writing = setInterval(() => {
    writes++
    writeFileSync(join(dir, '..third', 'secrets'), [OLD, NEW, `${writes}`.padStart(32, '0')].join(','))
    if (writes === 1) {
      symlinkSync('..third', join(dir, '..data_tmp'))
      renameSync(join(dir, '..data_tmp'), join(dir, '..data'))
    }
  }, READ_MS / 3)
  await until(() => writes > 40, 'forty texts')
  clearInterval(writing)
  t.equal(secretsOf(config).length, 2, 'none was read twice')
  await until(() => secretsOf(config).length === 3, 'the last one stays, and is taken')
})

await test('Each secret is taken by itself: CLIENT_SECRET, CLIENT_KEY and OPS_TOKEN', async (t) => {
  const [first, second] = [pem(), pem()]
  const world = await filesOf(
    t,
    { SESSION_SECRETS: OLD, CLIENT_SECRET: 'one', CLIENT_KEY: first, OPS_TOKEN: TOKEN },
    { settings: { ISSUER: 'http://127.0.0.1:1', CLIENT_AUTH: 'private_key_jwt' } },
  )
  const { config, write, refused, accepted } = world
  const before = secretTexts(config)
  write('SESSION_SECRETS', 'wrong')
  write('CLIENT_SECRET', 'two\r\nlines')
  write('CLIENT_KEY', 'no key')
  write('OPS_TOKEN', 'short')
  for (const name of ['SESSION_SECRETS', 'CLIENT_SECRET', 'CLIENT_KEY', 'OPS_TOKEN']) {
    await refused(new RegExp(`^${name} has not changed with its file: it must be`))
  }
  t.same(secretTexts(config), before)
  write('CLIENT_SECRET', 'two')
  write('CLIENT_KEY', second + first)
  write('OPS_TOKEN', TOKEN.toUpperCase())
  await until(() => config.ops.token?.current === TOKEN.toUpperCase(), 'the new token')
  await until(() => config.oauth.clientSecret?.current === 'two', 'the new client secret')
  await until(() => config.oauth.clientKeys?.current.length === 2, 'the new keys')
  t.same(secretsOf(config), [OLD])
  write('SESSION_SECRETS', OLD)
  await accepted()
})

await test('REDIS_URL_FILE: only the credentials may change, once Redis takes them', async (t) => {
  let refusal: string | undefined
  const tried: string[] = []
  const { config, write, refused, accepted, lines } = await filesOf(
    t,
    { REDIS_URL: 'redis://:old@redis.test:6379/1' },
    {
      tryRedis: async (url) => {
        tried.push(url)
        return refusal
      },
    },
  )
  for (const url of [
    'redis://:new@other.test:6379/1',
    'redis://:new@redis.test:6380/1',
    'redis://:new@redis.test:6379/2',
    'rediss://:new@redis.test:6379/1',
    'redis://:new@redis.test:6379,redis://:new@other.test:6379',
    'redis+sentinel://:new@redis.test:6379/1',
  ]) {
    write('REDIS_URL', url)
    await refused(/user and password only/)
    t.equal(config.redisUrl?.current, 'redis://:old@redis.test:6379/1', url)
    write('REDIS_URL', 'redis://:old@redis.test:6379/1')
    await until(() => lines.at(-1)?.is === 'info', 'the address as it was')
  }
  t.same(tried, [])
  refusal = 'redis.test:6379 cannot be used (WRONGPASS)'
  write('REDIS_URL', 'redis://user:new@redis.test:6379/1')
  await refused(/REDIS_URL has not changed with its file: redis.test:6379 cannot be used \(WRONGPASS\)/)
  const count = lines.length
  await until(() => tried.length === 2, 'another try')
  t.equal(lines.length, count, 'the second refusal is not logged again')
  write('REDIS_URL', 'redis://:old@redis.test:6379/1')
  await accepted()
  t.equal(lines.at(-1)?.is, 'info', 'the address as it was, after one that Redis refused')
  refusal = undefined
  write('REDIS_URL', 'redis://user:new@redis.test:6379/1')
  await until(() => config.redisUrl?.current === 'redis://user:new@redis.test:6379/1', 'the new credentials')
  t.notMatch(JSON.stringify(lines), /new@/)
})

await test('No file is read after the close', async (t) => {
  const { config, write, files } = await filesOf(t, { SESSION_SECRETS: OLD })
  files.close()
  write('SESSION_SECRETS', `${OLD},${NEW}`)
  const other = await filesOf(t, { OPS_TOKEN: TOKEN })
  other.write('OPS_TOKEN', TOKEN.toUpperCase())
  await until(() => other.config.ops.token?.current === TOKEN.toUpperCase(), 'another owner takes a change meanwhile')
  t.same(secretsOf(config), [OLD])
})
