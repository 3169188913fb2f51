import { Desk } from './desk.ts'
import { client, market } from './trading.ts'
import { byId, drawChart, show, showError, showLine } from './view.ts'

const CHART_TICKS = 100

const accountChoice = byId('accounts') as HTMLSelectElement
const symbolChoice = byId('symbol') as HTMLSelectElement
const stakeInput = byId('stake') as HTMLInputElement

let desk: Desk | undefined
/** The session whose data is shown, if one is. */
let shown: string | undefined

function showSession(isOther: boolean): void {
  const session = client.session.get()
  if (session.status === 'unknown') return
  if (session.status === 'unavailable') return show('session', 'The server does not respond. One moment, please.')
  const isActive = session.status === 'active'
  if (isActive) show('session', `You are logged in until ${new Date(session.expiresAt).toLocaleTimeString()}.`)
  else show('session', session.reason ? `You are logged out: ${session.reason}.` : 'Log in to trade.')
  byId('visitor').hidden = isActive
  byId('user').hidden = !isActive
  // The other session may be that of another user, so nothing of the old one stays.
  if (!isOther) return
  if (shown) show('message', '')
  shown = isActive ? session.session : undefined
  desk?.close()
  for (const list of ['accounts', 'wallets']) byId(list).replaceChildren()
  if (!shown) return
  // Each by itself: the login of a user may allow trading, and no wallets.
  showAccounts(shown).catch(showError)
  showWallets(shown).catch(showError)
}

async function showAccounts(own: string): Promise<void> {
  const { data } = await (await client.api('/trading/v1/options/accounts')).json()
  if (own !== shown) return
  for (const { account_id: id, account_type: type } of data) {
    accountChoice.add(new Option(`${id} (${type})`, String(id)))
  }
  openDesk()
}

async function showWallets(own: string): Promise<void> {
  const { data } = await (await client.api('/wallet/v1/wallets')).json()
  if (own !== shown) return
  for (const { wallet_id: id, wallet_type: type, balance, currency } of data) {
    showLine('wallets', String(id), `${type}: ${balance} ${currency}`)
  }
}

function openDesk(): void {
  desk?.close()
  // A new user may have no account yet.
  desk = accountChoice.value ? new Desk(accountChoice.value) : undefined
}

function showFailedLogin(): void {
  const failed = client.session.takeAuthError()
  if (!failed) return
  show('message', failed.code === 'access_denied' ? 'You cancelled.' : 'That did not work.')
  byId('again').setAttribute('href', failed.againUrl)
  byId('again').hidden = false
}

/** Shows the latest price of a symbol. */
function showPrice(symbol: string): void {
  market.subscribe({ ticks: symbol }, ({ tick }) => show(symbol, String(tick.quote)), showError)
}

/** Shows the chart of a symbol. A reconnect leaves no hole in it. */
function showChart(symbol: string): void {
  const chart = market.series({ symbol, style: 'ticks', count: CHART_TICKS })
  chart.subscribe(() =>
    drawChart(
      'chart',
      chart.get().points.map(({ quote }) => quote),
    ),
  )
}

showFailedLogin()
for (const flow of ['login', 'signup'] as const) byId(flow).setAttribute('href', client.session.loginUrl(flow))
byId('logout').addEventListener('click', () =>
  client.logout().catch(() => show('message', 'You may still be logged in. Please log out again.')),
)
accountChoice.addEventListener('change', openDesk)
byId('buy').addEventListener('click', () => void desk?.buy().catch(showError))
byId('order').addEventListener('submit', (event) => {
  event.preventDefault()
  desk?.getPrice(symbolChoice.value, stakeInput.valueAsNumber).catch(showError)
})

showPrice('R_100')
showPrice('R_50')
showChart('R_100')
market.onStatus(() => show('market', market.status().state))
client.session.subscribe(showSession)
