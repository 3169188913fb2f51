import type { Sharing } from './upstream/operations/sharing.ts'

/** Reads from the metrics of a server what its browsers share. @throws Error when there is no response */
export async function readSharing(opsUrl: string): Promise<Sharing> {
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
  const value = (series: string): number =>
    Number(
      metrics
        .split('\n')
        .find((line) => line.startsWith(`${series} `))
        ?.slice(series.length) ?? 0,
    )
  return {
    browsers: value('bff_relays{kind="public"}'),
    sockets: value('bff_feed_upstream_sockets'),
    streams: value('bff_feed_streams'),
    ownSockets: value('bff_feed_own_sockets'),
  }
}
