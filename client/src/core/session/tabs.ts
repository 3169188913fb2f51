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
  let channel: InstanceType<typeof BroadcastChannel> | undefined
  const leaving = new AbortController()
  const lead = (): unknown =>
    // The lock may be granted to a tab that is just leaving.
    leaving.signal.aborted ||
    new Promise((resolve) => {
      leaving.signal.onabort = resolve
      onLead()
    })
  new Promise((resolve, reject) => {
    if (!locks) return reject()
    channel = new BroadcastChannel(name)
    channel.onmessage = ({ data }: { readonly data: unknown }) => onMessage(data)
    resolve(locks.request(name, leaving, lead))
    // A sandboxed frame, for example, gets no lock, and a page that may store nothing no channel, so this tab leads itself.
  }).catch(lead)
  return {
    post: (message) => channel?.postMessage(message),
    close() {
      leaving.abort()
      channel?.close()
    },
  }
}
