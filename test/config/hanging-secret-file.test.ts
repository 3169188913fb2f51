import { execFileSync } from 'node:child_process'
import {
  closeSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { SecretFiles } from '../../src/config/secret-files.ts'
import { secretFiles } from '../../src/config/secrets.ts'
import { ALONE } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'

/** The file that a descriptor of this process leads to (Linux). */
function fileOf(descriptor: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return undefined
  }
}

const nothing = (): undefined => undefined

await test('A file that is not read to its end takes one thread, however often it is looked at, and is read again after that', async (t) => {
  const dir = t.testdir({ secret: 'one', token: 'a'.repeat(32) })
  const [secret, token, pipe] = ['secret', 'token', 'pipe'].map((name) => join(dir, name)) as [string, string, string]
  const environment = { ...ALONE, CLIENT_SECRET_FILE: secret, OPS_TOKEN_FILE: token }
  const config = readConfig(environment)

  const files = new SecretFiles(secretFiles(environment, config), environment, config, {
    log: { info: nothing, warn: nothing },
    tryRedis: async () => undefined,
    readMs: 15,
    timeoutMs: 100,
  })
  t.teardown(() => files.close())
  execFileSync('mkfifo', [pipe])
  // While it is open here, who reads it waits, as with a file of a server that is away.
  const held = openSync(pipe, 'r+')
  try {
    symlinkSync(pipe, join(dir, 'link'))
    renameSync(join(dir, 'link'), secret)
    const refused = /^CLIENT_SECRET has not changed with its file: the file cannot be read/
    await until(() => files.warnings.some((each) => refused.test(each)), 'it cannot be read')
    for (const letter of ['b', 'c', 'd', 'e']) {
      writeFileSync(token, letter.repeat(32))
      await until(() => config.ops.token?.current === letter.repeat(32), 'the other file is read')
      const open = readdirSync('/proc/self/fd').filter((each) => fileOf(each) === pipe)
      t.equal(open.length, 2, 'here, and where it is read')
    }
    unlinkSync(secret)
    writeFileSync(secret, 'two')
  } finally {
    closeSync(held)
  }
  await until(() => config.oauth.clientSecret?.current === 'two', 'the new secret')
})
