import { test } from 'tap'
import { InstanceReports } from '../../src/controls/instance-reports.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import type { SessionIndex } from '../../src/store/session-index.ts'
import { clockAhead, timeAhead } from '../support/time/clock-ahead.ts'

const POLL_MS = 300

await test('an instance that polls is listed at every moment, by a report in ten seconds; one that is gone is not, half a minute later', async (t) => {
  const moves = [timeAhead(t), clockAhead(t)]
  const index = await new MemoryStore().openIndex()
  let added = 0
  const counted: SessionIndex = {
    ...index,
    add(...report) {
      added++
      return index.add(...report)
    },
  }
  const [polls, gone] = [new InstanceReports(counted, 'polls'), new InstanceReports(index, 'gone')]
  const listed = async (): Promise<string[]> => (await polls.list()).map(({ instance }) => instance).sort()
  await gone.report(1, 'the document', Date.now())
  for (let passedMs = 0; passedMs < 35_000; passedMs += POLL_MS) {
    await polls.report(1, 'the document', Date.now())
    const names = await listed()
    // The clock goes on, too, so which one the last seconds belong to depends on the machine.
    if (passedMs < 27_000 || passedMs >= 30_000)
      t.same(names, passedMs < 30_000 ? ['gone', 'polls'] : ['polls'], `after ${passedMs} ms`)
    for (const move of moves) move(POLL_MS)
  }
  t.equal(added, 4)
})
