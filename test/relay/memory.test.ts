import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { BrowserLine } from '../support/browser-line.ts'
import { LineUpstream } from '../support/line-upstream.ts'
import { PUBLIC } from '../support/relay-world.ts'
import { ready, serverProcess } from '../support/server-process.ts'
import { until } from '../support/until.ts'

const MIB = 1_048_576

/** A server in a process of its own, where its memory can be told from that of browsers and upstream. */
async function measured(t: Test, settings: Record<string, string>) {
  const upstream = await LineUpstream.start(t)
  const port = await freePort()
  const publicUrl = `http://localhost:${port}`
  const server = await serverProcess(t, {
    PUBLIC_URL: publicUrl,
    PORT: String(port),
    AUTH_URL: 'http://127.0.0.1:9',
    API_URL: `http://${upstream.host}`,
    WS_URL: `ws://${upstream.host}`,
    CLIENT_ID: 'test-client',
    MAX_PUBLIC_RELAYS_PER_IP: '10000',
    LOG_LEVEL: 'warn',
    // What is held is to be seen, and not what is left for the collector to find.
    NODE_OPTIONS: '--max-semi-space-size=1',
    ...settings,
  })
  t.ok(await ready(server))
  return {
    upstream,
    /** Resident memory, and what waits in it for slow peers, in bytes. */
    memory: async (): Promise<{ resident: number; buffered: number }> => {
      const text = await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text()
      const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
      return { resident: value('process_resident_memory_bytes'), buffered: value('bff_relay_buffered_bytes') }
    },
    open: async (count: number): Promise<BrowserLine[]> => {
      const lines: BrowserLine[] = []
      while (lines.length < count) {
        const batch = Array.from({ length: Math.min(50, count - lines.length) }, () => {
          const line = new BrowserLine(`ws://127.0.0.1:${port}${PUBLIC}`, { origin: publicUrl })
          t.teardown(() => line.socket.terminate())
          return line.opened()
        })
        lines.push(...(await Promise.all(batch)))
      }
      return lines
    },
  }
}

await test('slow readers of a fast upstream cost what may wait for them, and no more', async (t) => {
  const { upstream, memory, open } = await measured(t, { SLOW_CONSUMER_SECONDS: '3600' })
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
  const { upstream, memory, open } = await measured(t, {})
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
