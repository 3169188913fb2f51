/** The tabs of a browser, as one of them sees them. */
export interface Tabs {
  /** True in the one tab that keeps the session socket. */
  readonly isLeader: () => boolean
  /** Sends a message to all other tabs. */
  readonly post: (message: unknown) => void
  readonly close: () => void
}

/**
 * Joins the other tabs of the same origin. One of them leads; when it is closed or enters the back/forward cache,
 * another tab takes the lead. Without Web Locks or BroadcastChannel, as on a page without TLS, every tab leads itself.
 * @param onLead called when this tab takes the lead
 */
export function joinTabs(name: string, onLead: () => void, onMessage: (message: unknown) => void): Tabs {
  const locks = globalThis.navigator?.locks
  const channel = locks && globalThis.BroadcastChannel && new BroadcastChannel(name)
  const leaving = new AbortController()
  const { signal } = leaving
  let leads = false
  const lead = (): void => {
    if (signal.aborted) return
    leads = true
    onLead()
  }
  if (channel) {
    channel.onmessage = ({ data }) => onMessage(data)
    const untilLeft = (): Promise<void> =>
      new Promise((resolve) => {
        signal.onabort = () => resolve()
        lead()
      })
    // A sandboxed frame, for example, gets no lock, so this tab leads itself.
    locks.request(name, { signal }, untilLeft).catch(lead)
  } else queueMicrotask(lead)
  return {
    isLeader: () => leads,
    post: (message) => channel?.postMessage(message),
    close() {
      leads = false
      leaving.abort()
      channel?.close()
    },
  }
}
