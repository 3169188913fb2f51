'use client'
import { useApi, useSubscription } from 'trading-bff-client/react'
import { client, logOut } from '../trading'

export default function Account() {
  const accounts = useApi(client, '/trading/v1/options/accounts')
  const price = useSubscription(client, { ticks: 'R_100' })
  return (
    <>
      <p>{accounts.error?.message ?? accounts.data?.data.map(({ account_id: id }) => id).join()}</p>
      <output>{price.data?.tick.quote}</output> <button onClick={logOut}>Log out</button>
    </>
  )
}
