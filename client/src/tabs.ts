/** The tabs of a browser, as one of them sees them. */
export interface Tabs {
  /** True in the one tab that has the socket. */
  readonly isLeader: () => boolean
  /** Sends a message to all other tabs. */
  readonly post: (message: unknown) => void
  readonly close: () => void
}

/**
 * Joins the other tabs. One of them leads, and another follows when it is closed or hidden in the back/forward cache.
 * Where Web Locks or BroadcastChannel are missing, as on a page without TLS, each tab leads itself.
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
    // Refused, as in a sandboxed frame: then this tab is on its own.
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
