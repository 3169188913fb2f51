import { execFileSync } from 'node:child_process'
import { test } from 'tap'

const ERRORS = new URL('../../client/src/core/base/errors.ts', import.meta.url).href

/** A page without `reportError`, whose listeners throw. */
const PAGE = `
import { notify } from '${ERRORS}'
const seen = []
process.on('uncaughtException', (error) => seen.push(error))
const throws = (error) => () => { throw error }
notify(new Set([throws('one'), () => seen.push('a listener'), throws('two')]), (listener) => listener())
queueMicrotask(() => seen.push('a microtask'))
seen.push('the caller')
process.on('exit', () => console.log(seen.join('\\n')))`

await test('without reportError the exception of each listener is thrown in a task of its own, after all listeners', (t) => {
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', PAGE], { encoding: 'utf8' })
  t.same(output.trim().split('\n'), ['a listener', 'the caller', 'a microtask', 'one', 'two'])
  t.end()
})
