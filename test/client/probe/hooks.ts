import type { Client, Message, PublicSocket, TradingSocket } from 'trading-bff-client'
import { sessionKey } from 'trading-bff-client'
import { useApi, useSeries, useSession, useSocket, useSubscription } from 'trading-bff-client/react'

// Nothing runs this. Each compiler must accept it, and so find an error after every `@ts-expect-error`.

export function streams(client: Client, symbol: string): unknown[] {
  const { data } = useSubscription(client, { ticks: symbol })
  const { points } = useSeries(client, { symbol, style: 'ticks' })
  const candles = useSeries(client, { symbol, style: 'candles', granularity: 60 }).points.at(-1)?.close.toFixed()
  const own = useSubscription<{ rate: number }>(client, { exchange_rate: 'EUR' })
  // @ts-expect-error a misspelt operation
  useSubscription(client, { tikcs: symbol })
  // @ts-expect-error ticks have no close
  points.at(-1)?.close
  return [data?.tick.quote.toFixed(), points.at(-1)?.quote.toFixed(), candles, own.data?.rate.toFixed()]
}

export function calls(client: Client, page: number | undefined): unknown[] {
  const accounts = useApi(client, `/trading/v1/options/accounts?page=${Number(page)}`)
  const balance: number | string | undefined = accounts.data?.data[0]?.balance
  const reload: () => void = accounts.reload
  const own = useApi<{ data: { nickname: string } }>(client, '/account/v1/nickname')
  const nothing = useApi(client, page === undefined ? undefined : '/wallet/v1/wallets')
  // @ts-expect-error no such path
  useApi(client, '/trading/v2/options/accounts')
  // @ts-expect-error no such path, although the page says what it expects
  useApi<{ data: 1 }>(client, '/trading/v2/options/accounts')
  // @ts-expect-error a transfer without an id has no GET
  useApi(client, '/payment-agents/v1/transfer')
  // @ts-expect-error a list has no such member
  accounts.data?.accounts
  return [balance, reload, own.data?.data.nickname.length, nothing.data?.data, nothing.error?.message, own.isLoading]
}

export function sockets(client: Client, account: string | undefined): unknown[] {
  const trading: TradingSocket | undefined = useSocket(client, 'VRTC100').socket
  const market: PublicSocket | undefined = useSocket(client).socket
  const either = useSocket(client, account)
  const none: string | null = account ?? null
  const later: TradingSocket | undefined = useSocket(client, none).socket
  const own = useSubscription(client, { balance: 1 }, none).data?.balance.currency
  const chart = useSeries(client, { symbol: 'R_100', style: 'ticks' }, none).points
  // @ts-expect-error a public socket has no commands
  market?.command({ buy: 'an id', price: 1 })
  // @ts-expect-error it may be the public socket
  either.socket?.command({ buy: 'an id', price: 1 })
  const listen = (message: Message): unknown => message['msg_type']
  market?.listen(listen)
  const key: string | undefined = sessionKey(useSession(client))
  return [trading?.command({ buy: 'an id', price: 1 }), either.status.state, key, later, own, chart]
}
