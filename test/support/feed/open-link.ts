import { pino } from 'pino'
import { Registry } from 'prom-client'
import type { Test } from 'tap'
import type { ConnectionOwner } from '../../../src/sockets/feed/upstream/connection-users.ts'
import { Connection } from '../../../src/sockets/feed/upstream/connection.ts'
import { WriteBatch } from '../../../src/sockets/feed/wire/write-batch.ts'
import { createFeedMetrics, type FeedMetrics } from '../../../src/telemetry/feed-metrics.ts'
import { ScriptedUpstream } from '../upstream/scripted-upstream.ts'

/** A connection of the feed that is not open yet. */
interface LinkWorld {
  readonly upstream: ScriptedUpstream
  readonly link: Connection
  /** What its owner is told. */
  readonly told: string[]
  /** The messages of its log lines. */
  readonly logged: string[]
  readonly metrics: FeedMetrics
  readonly batch: WriteBatch
}

/** A connection that ends with the test. */
export async function openLink(
  t: Test,
  heartbeatMs?: number,
  isNeeded: () => boolean = () => true,
): Promise<LinkWorld> {
  const upstream = await ScriptedUpstream.start(t)
  const told: string[] = []
  const logged: string[] = []
  const owner: ConnectionOwner = {
    kind: 'stream',
    isNeeded,
    opened: () => told.push('opened'),
    beat: () => undefined,
    unclaimed: () => told.push('unclaimed'),
    lost: () => told.push('lost'),
  }
  const metrics = createFeedMetrics(new Registry())
  const batch = new WriteBatch()
  const write = (line: string): void => void logged.push((JSON.parse(line) as { msg: string }).msg)
  const link = new Connection(
    {
      url: `ws://${upstream.host}/`,
      maxMessageBytes: 1000,
      batch,
      log: pino({ level: 'info' }, { write }),
      metrics,
      heartbeatMs,
    },
    owner,
  )
  t.teardown(() => link.end())
  return { upstream, link, told, logged, metrics, batch }
}
