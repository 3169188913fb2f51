/** Starts the page. Everything it knows about the login comes from the client of the browser package. */
import { accounts } from './accounts.js'
import { showFor } from './dom.js'
import { startInspect } from './inspect.js'
import { market } from './market.js'
import { followNotice, showAuthError } from './notices.js'
import { showOwnSessions } from './own-sessions.js'
import { session } from './session.js'
import { trade } from './trade.js'

session.addEventListener('change', () => {
  if (session.state !== 'loading') showFor(session.state)
})

startInspect()
showAuthError()
followNotice()
showOwnSessions()
accounts.start()
trade.start()
market.start()
session.start()
