/** The metrics of servers before and after an incident, and the alerts that it must raise. */
export interface Scenario {
  readonly name: string
  readonly raises: readonly string[]
  /** By instance. `before` is undefined where the instance did not exist yet; `later` is what follows after an hour. */
  readonly scrapes: Readonly<
    Record<string, { readonly before?: string; readonly after: string; readonly later?: string }>
  >
  /** What happened between the scrapes happens in a single minute. By default, it happens again in every minute. */
  readonly happensOnce?: boolean
}

/** The metric of the event loop's lag. */
export const LAG = /^nodejs_eventloop_lag_p99_seconds (\S+)$/m

/** The metrics without the lag of the event loop, which is high while so many servers run. */
export async function scrape(server: { readonly opsUrl: string }): Promise<string> {
  return (await scrapeAll(server)).replace(LAG, '')
}

/** All metrics. */
export async function scrapeAll({ opsUrl }: { readonly opsUrl: string }): Promise<string> {
  return (await fetch(`${opsUrl}/metrics`)).text()
}

/** The metrics of one server before and after `happen`. */
export async function around(
  server: { readonly opsUrl: string },
  name: string,
  raises: readonly string[],
  happen: () => Promise<unknown>,
): Promise<Scenario> {
  const before = await scrape(server)
  await happen()
  return { name, raises, scrapes: { a: { before, after: await scrape(server) } } }
}
