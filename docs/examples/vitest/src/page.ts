import type { Client, SocketError, TradingSocket } from 'trading-bff-client'

/** Shows the session, a price, and a button that buys. */
export function showPage(client: Client, root: HTMLElement): void {
  root.innerHTML = '<a></a><output></output><button>Buy</button><p></p>'
  const [link, price, button, note] = [...root.children] as [HTMLAnchorElement, Element, HTMLButtonElement, Element]
  let trading: TradingSocket | undefined

  const show = (): void => {
    const session = client.session.get()
    link.hidden = session.status !== 'anonymous'
    link.href = client.session.loginUrl('login')
    link.textContent = session.status === 'anonymous' && session.reason === 'idle' ? 'You were away' : 'Log in'
    if (session.status === 'active') trading ??= client.tradingSocket('VRTC100')
    else if (session.status === 'anonymous') trading = undefined
    button.disabled = trading === undefined
  }
  client.session.subscribe(show)
  show()

  const market = client.publicSocket()
  market.subscribe({ ticks: 'R_100' }, ({ tick }) => (price.textContent = String(tick.quote)))
  market.onStatus(() => (price.className = market.status().state))

  button.onclick = async () => {
    try {
      const answer = await trading?.command({ buy: 'a-proposal', price: 10 })
      note.textContent = `Bought ${answer?.buy.contract_id}`
    } catch (error) {
      note.textContent = (error as SocketError).outcome === 'unknown' ? 'Look at your contracts' : 'Nothing was bought'
    }
  }
}
