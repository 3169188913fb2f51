import { join } from 'node:path'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { errorOf, wrongOnes } from '../support/config/wrong-settings.ts'
import { ALONE } from '../support/server/settings.ts'
import { exactly } from '../support/exactly.ts'

const FIRST = 'not-to-print-the-first-secret-of-32-bytes'
const SECOND = 'not-to-print-the-second-secret-of-32-bytes'

const errorWith = (settings: Record<string, string>) => errorOf({ ...ALONE, ...settings })
const wrongWith = (settings: Record<string, string>): string[] => wrongOnes({ ...ALONE, ...settings })

await test('SESSION_SECRETS with white space inside a secret, or with one twice, are refused and not printed', async (t) => {
  for (const SESSION_SECRETS of [
    `${FIRST}\n${SECOND}`,
    `${FIRST}\r\n${SECOND}`,
    `${FIRST} ${SECOND}`,
    `${FIRST},${SECOND}\tend`,
    `${FIRST},${FIRST}`,
    `${FIRST}, ${SECOND},${FIRST}\n`,
    `${FIRST},`,
    `${FIRST},,${SECOND}`,
  ]) {
    const error = errorWith({ SESSION_SECRETS })
    t.match(
      error?.message,
      /^ {2}SESSION_SECRETS must be comma-separated .* all different, with no white space inside/m,
    )
    t.equal(error?.problems.length, 1, JSON.stringify(SESSION_SECRETS))
    t.notMatch(error?.message, /not-to-print/)
  }
})

await test('SESSION_SECRETS_FILE is a list with commas: not one secret a line, but with white space around commas and at the end', (t) => {
  const fileOf = (content: string): string => join(t.testdir({ secrets: content }), 'secrets')
  for (const content of [
    `${FIRST},${SECOND}\n`,
    `${FIRST},${SECOND}\r\n\r\n`,
    ` ${FIRST} , ${SECOND} `,
    `${FIRST},\n${SECOND}\n`,
  ]) {
    t.same(readConfig({ ...ALONE, SESSION_SECRETS_FILE: fileOf(content) }).secrets.current, [FIRST, SECOND])
  }
  t.same(wrongWith({ SESSION_SECRETS_FILE: fileOf(`${FIRST}\n${SECOND}\n`) }), ['SESSION_SECRETS'])
  t.end()
})

await test('other secrets of several lines are refused and not printed', async (t) => {
  const error = errorWith({
    CLIENT_SECRET: `${FIRST}\n${SECOND}`,
    REDIS_URL: `redis://:${FIRST}\n${SECOND}@redis.example`,
    IDENTITY_PATH: '/me',
    IDENTITY_POINTER: '/id',
    OPS_TOKEN: `${FIRST}\n${SECOND}`,
  })
  t.same(error?.problems.map(({ setting }) => setting).toSorted(), ['CLIENT_SECRET', 'OPS_TOKEN', 'REDIS_URL'])
  t.notMatch(error?.message, /not-to-print/)
})

await test('SESSION_IDLE_SECONDS above SESSION_MAX_SECONDS is refused if both are set; otherwise the smaller one counts', async (t) => {
  t.same(wrongWith({ SESSION_IDLE_SECONDS: '601', SESSION_MAX_SECONDS: '600' }), ['SESSION_IDLE_SECONDS'])
  for (const [settings, idleSeconds, maxSeconds, warnings] of [
    [{}, 1800, 28_800, 0],
    [{ SESSION_MAX_SECONDS: '600' }, 600, 600, 0],
    [{ SESSION_IDLE_SECONDS: '36000' }, 28_800, 28_800, 1],
    [{ SESSION_IDLE_SECONDS: '600', SESSION_MAX_SECONDS: '600' }, 600, 600, 0],
  ] as const) {
    const config = readConfig({ ...ALONE, ...settings })
    t.match(config.session, { idleMs: 1000 * idleSeconds, maxMs: 1000 * maxSeconds }, JSON.stringify(settings))
    const about = config.warnings.filter((warning) => warning.startsWith('SESSION_IDLE_SECONDS'))
    t.equal(about.length, warnings, 'a value that is set and does not count is warned about')
  }
})

await test('UPSTREAM_BUDGET with a window that can never be the tighter one is refused', async (t) => {
  for (const [UPSTREAM_BUDGET, windows] of [
    ['300/60,3000/600', '2'],
    ['300/60,4000/600', '2'],
    ['4000/600,300/60', '1'],
    ['300/60,600/90', '2'],
    ['300/60,300/600', '1'],
    ['301/60,300/600', '1'],
    ['1000/600, 5000/1200, 300/60, 4000/30', '2, 4'],
  ] as const) {
    const error = errorWith({ UPSTREAM_BUDGET })
    t.match(error?.problems, exactly({ setting: 'UPSTREAM_BUDGET' }), UPSTREAM_BUDGET)
    t.match(error?.message, `must not have window ${windows} of its list`)
    t.notMatch(error?.message, /\d\/\d/, 'no value')
  }
  for (const binds of [
    '300/60',
    '300/60,1000/600',
    '300/60,2999/600',
    '300/60,599/90',
    '10/1,60/10,301/60',
    '4/1,8/3',
  ]) {
    t.same(wrongWith({ UPSTREAM_BUDGET: binds }), [], binds)
  }
})

await test('PUBLIC_URL without http is the only setting that is named, since it does not tell whether this is production', async (t) => {
  for (const PUBLIC_URL of ['localhost:3000', 'bff.example:443', 'bff.example', 'ftp://bff.example']) {
    t.same(wrongWith({ PUBLIC_URL }), ['PUBLIC_URL'], PUBLIC_URL)
  }
})
