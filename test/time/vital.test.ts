import { spawnSync } from 'node:child_process'
import { test } from 'tap'

const { href } = new URL('../../src/time/vital.ts', import.meta.url)

await test('vital work that rejects ends the process, although rejections that nobody handles do not', (t) => {
  const program = `const { vital } = await import(${JSON.stringify(href)})
    process.on('unhandledRejection', ({ message }) => console.log(message))
    setTimeout(() => vital(Promise.reject(new Error('vital'))), 1)
    setTimeout(() => console.log('too late'), 20_000)
    void Promise.reject(new Error('survived'))`
  const options = { encoding: 'utf8', timeout: 30_000 } as const
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], options)
  t.equal(status, 1)
  t.equal(stdout, 'survived\n')
  t.match(stderr, 'Error: vital')
  t.end()
})
