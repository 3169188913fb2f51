/** What happens to a page, by the names that browsers give it. */
const EVENTS = ['online', 'offline', 'pagehide', 'pageshow', 'focus', 'visibilitychange'] as const

/** One of them. `pagehide` and `pageshow` only for the back/forward cache. */
export type PageEvent = (typeof EVENTS)[number]

/** Calls the listener for every event of the page. @returns what ends it */
export function onPage(listener: (event: PageEvent) => void): () => void {
  const watching = new AbortController()
  for (const name of EVENTS) {
    globalThis.addEventListener?.(
      name,
      // A page that is shown for the first time, or left for good, needs nothing.
      (event) => (event as { persisted?: boolean }).persisted !== false && listener(name),
      watching,
    )
  }
  return () => watching.abort()
}

/** True unless the browser is sure that there is no network. */
export const isOnline = (): boolean =>
  (globalThis.navigator as Partial<Navigator> | undefined)?.onLine !== false
