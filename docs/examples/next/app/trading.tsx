'use client'
import { useRouter } from 'next/navigation'
import { useEffect, type ReactNode } from 'react'
import { createClient, sessionKey } from 'trading-bff-client'
import { useSession } from 'trading-bff-client/react'

export const client = createClient()
export const logOut = () => client.logout().catch(() => alert('You may still be logged in. Please try again.'))

/** Has the page rendered anew when its user is another one, or none. */
export function FollowSession({ rendered, children }: { rendered: string | undefined; children: ReactNode }) {
  const session = useSession(client)
  const current = session.status === 'anonymous' ? null : sessionKey(session)
  const { refresh } = useRouter()
  useEffect(() => {
    if (current !== undefined && current !== rendered) refresh()
  }, [current, rendered, refresh])
  return children
}
