import { headers } from 'next/headers'
import { redirect } from 'next/navigation'
import { sessionFor } from 'trading-bff-client/server'
import { FollowSession } from '../trading'

export default async function Protected({ children }: LayoutProps<'/account'>) {
  const request = { headers: await headers() }
  const session = await sessionFor(request, { baseUrl: process.env.BFF_URL ?? '' }).catch(() => undefined)
  if (session === null) redirect('/')
  return (
    <FollowSession rendered={session?.session}>
      <h1>{session ? `Logged in as ${session.subject ?? 'a user'}` : 'Checking your login'}</h1>
      {children}
    </FollowSession>
  )
}
