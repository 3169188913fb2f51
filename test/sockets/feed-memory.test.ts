import { test } from 'tap'
import { measuredServer } from '../support/measured-server.ts'

const MIB = 1_048_576
const BROWSERS = 8
const SAMPLES = 15
/** Of nearly 4 KiB, the longest that the feed interprets. Parsed, it takes thirty times as much. */
const FAT = `[${Array.from({ length: 1270 }, () => '{}').join(',')}]`

for (const [what, count, request] of [
  ['equal subscriptions', 400, () => `{"ticks":"R_100","subscribe":1,"passthrough":{"a":${FAT}}}`],
  ['equal histories', 400, () => `{"ticks_history":"R_100","subscribe":1,"a":${FAT}}`],
  [
    'different histories',
    100,
    (index: number) =>
      `{"ticks_history":"R_100","subscribe":1,"style":"candles","granularity":${index + 1},"passthrough":{"a":${FAT}}}`,
  ],
] as const) {
  await test(`PUBLIC_FEED=shared: ${what} that wait for upstream cost little more than MAX_BUFFERED_BYTES a browser`, async (t) => {
    const settings = { PUBLIC_FEED: 'shared', FEED_REQUESTS_PER_MINUTE: '1000', PUBLIC_HANDSHAKES_PER_MINUTE: '0' }
    // Upstream never answers.
    const { usedBytes, open } = await measuredServer(t, settings)
    const clients = await open(BROWSERS)
    const before = await usedBytes()
    for (const { socket } of clients) for (let index = 0; index < count; index++) socket.send(request(index))
    // Meanwhile all that is read has been parsed, and what that took is gone.
    let used = 0
    for (let sample = 0; sample < SAMPLES; sample++) used = (await usedBytes()) - before
    t.ok(used < 3 * BROWSERS * MIB, `${Math.round(used / BROWSERS / 1024)} KiB a browser`)
  })
}
