/** The other tabs of a browser, as one of them reaches them. */
export interface Tabs {
  /** Sends a message to all other tabs. */
  readonly post: (message: unknown) => void
  readonly close: () => void
}

/**
 * Joins the other tabs of the same origin. One of them leads; when it is closed or enters the back/forward cache,
 * another tab takes the lead. Without Web Locks, as on a page without TLS, every tab leads itself.
 * @param onLead called when this tab takes the lead, never before this function has returned
 */
export function joinTabs(name: string, onLead: () => void, onMessage: (message: unknown) => void): Tabs {
  const locks = globalThis.navigator?.locks
  const channel = locks && new BroadcastChannel(name)
  const leaving = new AbortController()
  const { signal } = leaving
  const lead = (): unknown =>
    // The lock may be granted to a tab that is just leaving.
    signal.aborted ||
    new Promise((resolve) => {
      signal.onabort = resolve
      onLead()
    })
  if (channel) channel.onmessage = ({ data }) => onMessage(data)
  // A sandboxed frame, for example, gets no lock, so this tab leads itself.
  const leading: Promise<unknown> = locks?.request(name, { signal }, lead) ?? Promise.reject()
  leading.catch(lead)
  return {
    post: (message) => channel?.postMessage(message),
    close() {
      leaving.abort()
      channel?.close()
    },
  }
}
