/** The tabs of a browser, as one of them sees them. */
export interface Tabs {
  /** True in the one tab that keeps the session socket. */
  leads: boolean
  /** Sends a message to all other tabs. */
  readonly post: (message: unknown) => void
  readonly close: () => void
}

/**
 * Joins the other tabs of the same origin. One of them leads; when it is closed or enters the back/forward cache,
 * another tab takes the lead. Without Web Locks, as on a page without TLS, every tab leads itself.
 * @param onLead called when this tab takes the lead
 */
export function joinTabs(name: string, onLead: () => void, onMessage: (message: unknown) => void): Tabs {
  const locks = globalThis.navigator?.locks
  const channel = locks && new BroadcastChannel(name)
  const leaving = new AbortController()
  const { signal } = leaving
  const tabs: Tabs = {
    leads: !locks,
    post: (message) => channel?.postMessage(message),
    close() {
      leaving.abort()
      channel?.close()
    },
  }
  const lead = (): void => {
    tabs.leads = true
    onLead()
  }
  if (channel) {
    channel.onmessage = ({ data }) => onMessage(data)
    const untilLeft = (): unknown =>
      // The lock may be granted to a tab that is just leaving.
      signal.aborted ||
      new Promise((resolve) => {
        signal.onabort = resolve
        lead()
      })
    // A sandboxed frame, for example, gets no lock, so this tab leads itself. It does no harm to a tab that has left.
    locks.request(name, { signal }, untilLeft).catch(lead)
  }
  return tabs
}
