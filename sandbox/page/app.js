/** Starts the page. Everything it knows about the login comes from GET /auth/session. */
import { accounts } from './accounts.js'
import { showFor } from './dom.js'
import { startInspect } from './inspect.js'
import { market } from './market.js'
import { showAuthError } from './notices.js'
import { session } from './session.js'
import { trade } from './trade.js'

session.addEventListener('change', () => {
  if (session.state !== 'loading') showFor(session.state)
})

/** Open sockets would keep the page out of the back/forward cache. A restored page must not show an old login. */
addEventListener('pagehide', () => {
  market.pause()
  trade.pause()
})
addEventListener('pageshow', (event) => {
  if (!event.persisted) return
  session.forget()
  session.check()
  market.resume()
})

startInspect()
showAuthError()
accounts.start()
trade.start()
market.start()
session.start()
