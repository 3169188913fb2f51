/** What browsers of the server before this sandbox share at the moment. */
export interface Sharing {
  /** Its PUBLIC_FEED. */
  readonly feed: 'relay' | 'shared'
  /** Browsers with a public socket. */
  readonly browsers: number
  /** Upstream sockets that all of them share. */
  readonly sockets: number
  /** Upstream subscriptions that they share. */
  readonly streams: number
  /** Upstream sockets for one browser alone. */
  readonly ownSockets: number
}

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
    // A relay has no such metrics.
    feed: metrics.includes('\nbff_feed_upstream_sockets ') ? 'shared' : 'relay',
    browsers: value('bff_relays{kind="public"}'),
    sockets: value('bff_feed_upstream_sockets'),
    streams: value('bff_feed_streams'),
    ownSockets: value('bff_feed_own_sockets'),
  }
}
