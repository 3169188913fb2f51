import { test } from 'tap'
import { measuredServer } from '../support/server/measured-server.ts'
import { until } from '../support/time/until.ts'

const MIB = 1_048_576

await test('browsers that read slowly cost no more memory than MAX_BUFFERED_BYTES each', async (t) => {
  const { upstream, memory, open } = await measuredServer(t, { SLOW_CONSUMER_SECONDS: '3600' })
  const relays = 4
  const { resident: before } = await memory()
  // The messages are half a GiB, but this process has one copy of them.
  const message = Buffer.alloc(16_384)
  upstream.onSocket = (socket) => {
    for (let count = 0; count < 8192; count++) socket.send(message)
  }
  const clients = await open(relays)
  for (const { socket, received } of clients) {
    // The browser reads a little, pauses, and reads on.
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
  // One message may be added just below the limit, and one chunk of the connection may have been read already.
  t.ok(buffered < relays * (MIB + 131_072), `${buffered} bytes waited`)
  t.ok(resident - before < 128 * MIB, `${Math.round((resident - before) / MIB)} MiB more`)
  t.ok(
    clients.every(({ socket }) => socket.readyState === 1),
    'the slow relays stay open',
  )
})

await test('an idle relay costs less than 90 kB', async (t) => {
  const { upstream, memory, open } = await measuredServer(t)
  const warm = 300
  await open(warm)
  const { resident: before } = await memory()
  const relays = 1000
  await open(relays)
  await until(() => upstream.open === warm + relays)
  const each = Math.round(((await memory()).resident - before) / relays)
  // Half of it is garbage of the handshake. One read buffer that is kept by mistake would add 65,536 bytes.
  t.ok(each < 90_000, `${each} bytes`)
})
