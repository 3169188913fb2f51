/** What /metrics of one server said before something happened and after it, and which alerts that must raise. */
export interface Scenario {
  readonly name: string
  readonly raises: readonly string[]
  /** By instance. `before` is undefined where that instance was not there yet. */
  readonly scrapes: Readonly<Record<string, { readonly before?: string; readonly after: string }>>
}

/** How late the event loop is. */
export const LAG = /^nodejs_eventloop_lag_p99_seconds (\S+)$/m

/** Without the lag of the event loop: so many servers at once are all late. */
export async function scrape(server: { readonly opsUrl: string }): Promise<string> {
  return (await scrapeAll(server)).replace(LAG, '')
}

/** All of it. */
export async function scrapeAll({ opsUrl }: { readonly opsUrl: string }): Promise<string> {
  return (await fetch(`${opsUrl}/metrics`)).text()
}

/** What one server said around `happen`. */
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
