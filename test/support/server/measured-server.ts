import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { BrowserSocket } from '../browser/browser-socket.ts'
import { ScriptedUpstream } from '../upstream/scripted-upstream.ts'
import { PUBLIC } from '../user.ts'
import { samplesOf } from '../telemetry/metrics.ts'
import { ALONE } from './settings.ts'
import { ready, serverProcess } from './server-process.ts'

const COLLECT_GARBAGE = new URL('collect-garbage.ts', import.meta.url).href
/** Longer than a garbage collection. */
const COLLECTING_MS = 200

/** A server in a process of its own, whose memory is apart from that of browsers and upstream. */
export interface MeasuredServer {
  readonly upstream: ScriptedUpstream
  readonly publicUrl: string
  readonly port: number
  /** Resident memory, and the part of it that waits for slow peers, in bytes. */
  readonly memory: () => Promise<{ resident: number; buffered: number }>
  /** Open sockets of browsers. */
  readonly relays: () => Promise<number>
  /** The least bytes in use after one of so many garbage collections (3): what one finds may go with the next one. */
  readonly usedBytes: (collections?: number) => Promise<number>
  /** Opens so many public sockets. */
  readonly open: (count: number) => Promise<BrowserSocket[]>
}

/** Starts one that ends with the test. */
export async function measuredServer(t: Test, settings: Record<string, string> = {}): Promise<MeasuredServer> {
  const upstream = await ScriptedUpstream.start(t)
  const port = await freePort()
  const publicUrl = `http://localhost:${port}`
  const server = await serverProcess(t, {
    ...ALONE,
    PUBLIC_URL: publicUrl,
    PORT: String(port),
    API_URL: `http://${upstream.host}`,
    WS_URL: `ws://${upstream.host}`,
    MAX_PUBLIC_RELAYS_PER_IP: '10000',
    LOG_LEVEL: 'warn',
    // Memory in use is to be measured, not garbage.
    NODE_OPTIONS: `--max-semi-space-size=1 --import=${COLLECT_GARBAGE}`,
    ...settings,
  })
  t.ok(await ready(server))
  const metric = async (name: string, labels = ''): Promise<number> =>
    (await samplesOf(`http://127.0.0.1:${server.opsPort}`, name)).get(labels) ?? NaN
  return {
    upstream,
    publicUrl,
    port,
    memory: async () => ({
      resident: await metric('process_resident_memory_bytes'),
      buffered: await metric('bff_relay_buffered_bytes'),
    }),
    relays: () => metric('bff_relays', 'kind="public"'),
    async usedBytes(collections = 3) {
      let least = Infinity
      for (let count = 0; count < collections; count++) {
        server.child.kill('SIGUSR2')
        await delay(COLLECTING_MS)
        const used = (await metric('nodejs_heap_size_used_bytes')) + (await metric('nodejs_external_memory_bytes'))
        least = Math.min(least, used)
      }
      return least
    },
    async open(count) {
      const lines: BrowserSocket[] = []
      while (lines.length < count) {
        const batch = Array.from({ length: Math.min(50, count - lines.length) }, () => {
          const line = new BrowserSocket(`ws://127.0.0.1:${port}${PUBLIC}`, { origin: publicUrl })
          t.teardown(() => line.socket.terminate())
          return line.opened()
        })
        lines.push(...(await Promise.all(batch)))
      }
      return lines
    },
  }
}
