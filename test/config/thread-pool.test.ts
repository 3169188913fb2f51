import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { threadPoolWarning } from '../../src/config/thread-pool.ts'

const ROOT = new URL('../../', import.meta.url)

const read = (file: string): string => readFileSync(fileURLToPath(new URL(file, ROOT)), 'utf8')

await test('npm start and the image set a number of threads that is enough to look up the names of all peers', (t) => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } }
  for (const text of [scripts.start, read('Dockerfile')]) {
    const threads = /\bUV_THREADPOOL_SIZE=(\S+)/.exec(text)?.[1]
    t.type(threads, 'string')
    t.equal(threadPoolWarning(1, threads), undefined)
  }
  t.end()
})

await test('Too few threads to look up the names of all peers are a warning, which counts them as libuv does', (t) => {
  for (const [threads, places] of Object.entries({ 4: 2, 5: 3, 14: 7, 0: 1, many: 1 })) {
    t.match(threadPoolWarning(1, threads), `only ${places} names at once`)
    t.match(threadPoolWarning(2, threads), `only ${places} names at once`, 'workers have what their supervisor has')
  }
  for (const threads of ['15', '16', '5000', '-1']) t.equal(threadPoolWarning(1, threads), undefined)
  t.equal(threadPoolWarning(2, undefined), undefined)
  t.end()
})
