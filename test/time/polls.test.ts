import { execFileSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { polls } from '../../src/time/polls.ts'
import { until } from '../support/time/until.ts'

await test('a poll waits for the end of a run before it counts the time to the next one', async (t) => {
  let runs = 0
  let isRunning = false
  const startedAt: number[] = []
  const endedAt: number[] = []
  const stop = polls(
    async () => {
      if (isRunning) t.fail('two runs at once')
      isRunning = true
      startedAt.push(performance.now())
      await delay(30)
      isRunning = false
      endedAt.push(performance.now())
      runs++
    },
    10,
    0,
  )
  t.teardown(stop)
  await until(() => runs >= 3, 'three runs')
  for (const [index, at] of endedAt.entries()) {
    const next = startedAt[index + 1]
    // Timers may fire a fraction of a millisecond early.
    if (next !== undefined) t.ok(next - at >= 9, `${next - at} ms after the last run`)
  }
})

await test('a poll that is stopped runs no more, also when it is stopped during a run', async (t) => {
  let idle = 0
  polls(async () => void idle++, 5, 5)()
  let runs = 0
  let isStopped = false
  const stop = polls(async () => {
    runs++
    await delay(5)
    stop()
    isStopped = true
  }, 1)
  await until(() => isStopped, 'the first run stops the poll')
  await delay(30)
  t.same([idle, runs], [0, 1])
})

await test('a poll keeps no process alive', (t) => {
  const file = new URL('../../src/time/polls.ts', import.meta.url).href
  const program = `const { polls } = await import(${JSON.stringify(file)}); polls(async () => {}, 1000); console.log('over')`
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    timeout: 30_000,
  })
  t.equal(output, 'over\n')
  t.end()
})

await test('a poll goes on after a run that has rejected', (t) => {
  const file = new URL('../../src/time/polls.ts', import.meta.url).href
  const program = `const { polls } = await import(${JSON.stringify(file)})
    process.on('unhandledRejection', ({ message }) => console.log(message))
    let runs = 0
    const stop = polls(async () => {
      if (++runs === 3) stop()
      throw new Error('run ' + runs)
    }, 1)
    setTimeout(() => undefined, 500)`
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    timeout: 30_000,
  })
  t.equal(output, 'run 1\nrun 2\nrun 3\n')
  t.end()
})
