import { test } from 'tap'
import { measuredServer } from '../support/measured-server.ts'
import { until } from '../support/until.ts'

const MIB = 1_048_576

await test('slow readers of a fast upstream cost what may wait for them, and no more', async (t) => {
  const { upstream, memory, open } = await measuredServer(t, { SLOW_CONSUMER_SECONDS: '3600' })
  const relays = 4
  const { resident: before } = await memory()
  // Half a GiB in all; here it is one and the same piece of memory.
  const message = Buffer.alloc(16_384)
  upstream.onSocket = (socket) => {
    for (let count = 0; count < 8192; count++) socket.send(message)
  }
  const lines = await open(relays)
  for (const { socket, received } of lines) {
    // It reads a little, rests, and reads on.
    socket.on('message', () => {
      received.length = 0
      socket.pause()
      setTimeout(() => socket.resume(), 1)
    })
  }
  let resident = 0
  let buffered = 0
  for (let full = 0; full < 20;) {
    const now = await memory()
    if (now.buffered > (relays * MIB) / 2) full++
    buffered = Math.max(buffered, now.buffered)
    resident = Math.max(resident, now.resident)
  }
  // A message is added to less than the limit, and one piece of a connection's may have been read already.
  t.ok(buffered < relays * (MIB + 131_072), `${buffered} bytes waited`)
  t.ok(resident - before < 128 * MIB, `${Math.round((resident - before) / MIB)} MiB more`)
  t.ok(
    lines.every(({ socket }) => socket.readyState === 1),
    'they are slow, but not gone',
  )
})

await test('an idle relay costs little', async (t) => {
  const { upstream, memory, open } = await measuredServer(t)
  const warm = 300
  await open(warm)
  const { resident: before } = await memory()
  const relays = 1000
  await open(relays)
  await until(() => upstream.open === warm + relays)
  const each = Math.round(((await memory()).resident - before) / relays)
  // Half of it is what the opening has left for the collector; a single forgotten read buffer would be 65,536 more.
  t.ok(each < 90_000, `${each} bytes`)
})
