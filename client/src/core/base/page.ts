/** The events of a page that connections react to. */
const EVENTS = ['online', 'offline', 'pagehide', 'pageshow', 'visibilitychange'] as const

/** An event of the page. `pagehide` and `pageshow` are limited to those of the back/forward cache. */
export type PageEvent = (typeof EVENTS)[number]

/**
 * Calls the listener for every event of the page.
 * @returns a function that stops the calls
 */
export function onPage(listener: (event: PageEvent) => void): () => void {
  const watching = new AbortController()
  for (const name of EVENTS) {
    globalThis.addEventListener?.(
      name,
      // A page that is shown for the first time, or left for good, has nothing to restore or save.
      (event) => (event as { persisted?: boolean }).persisted !== false && listener(name),
      watching,
    )
  }
  return () => watching.abort()
}

/** True unless the browser reports that it is offline. */
export const isOnline = (): boolean => (globalThis.navigator as Partial<Navigator> | undefined)?.onLine !== false
