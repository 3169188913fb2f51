/** A REST request that has arrived. */
export interface ArrivedCall {
  method: string
  /** The path with the query. */
  path: string
  headers: Record<string, string | string[] | undefined>
  body: string
}

/** Is told what the trading service does, at the moment when it does it. A port is that of the client's end of the connection. */
export interface UpstreamWatch {
  /** A call was executed or refused, whether or not anybody gets the response. */
  call(call: ArrivedCall, response: { status: number; body: string; port: number }): void
  /** A message arrived on a socket that was opened with this one-time password; it is undefined on a public socket. */
  message(text: string, socket: { otp: string | undefined; port: number }): void
  /** A message has bought this contract. */
  bought?(message: Readonly<Record<string, unknown>>, contractId: string): void
  /** A symbol has ticked; at the start this is also called for the last ticks before it. */
  tick(tick: { symbol: string; epoch: number; quote: number }): void
}
