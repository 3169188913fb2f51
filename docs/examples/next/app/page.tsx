'use client'
import { useSession } from 'trading-bff-client/react'
import { client } from './trading'

export default function Home() {
  const { status } = useSession(client)
  if (status === 'anonymous') return <a href={client.session.loginUrl('login', { returnTo: '/account' })}>Log in</a>
  return status === 'active' && <a href="/account">Account</a>
}
