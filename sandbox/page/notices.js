/** The message area: one line per subject, newest last. Also explains a failed login, by the query of the page. */
import { $, el } from './dom.js'

const SHORT_MS = 10_000

/** Shows a message. It replaces an earlier one with the same key. */
export function notice({ key, kind = 'info', text, link, requestId, brief = false }) {
  dismiss(key)
  const box = el(
    'div',
    { class: 'notice', 'data-kind': kind, 'data-key': key },
    el(
      'p',
      {},
      text,
      link && ' ',
      link && el('a', { href: link.href }, link.label),
      requestId && el('span', { class: 'fine request-id' }, ` Request id ${requestId}`),
    ),
    el('button', { type: 'button', class: 'close', 'aria-label': 'Dismiss message', onclick: () => box.remove() }, '×'),
  )
  $('#messages').append(box)
  if (brief) setTimeout(() => box.remove(), SHORT_MS)
}

export function dismiss(key) {
  for (const box of $('#messages').children) if (box.dataset.key === key) box.remove()
}

const AGAIN = 'Try again'
const AUTH_ERRORS = {
  access_denied: ['info', 'You cancelled, so nothing was changed.', AGAIN],
  state_mismatch: [
    'error',
    'This login was started elsewhere or took too long, so it was stopped to protect you.',
    'Continue to log in',
  ],
  invalid_grant: ['error', 'The login could not be completed because its code was no longer valid.', AGAIN],
  invalid_client: [
    'error',
    'This application is not set up correctly at the login provider, and its operator has been notified.',
    AGAIN,
  ],
  provider_unavailable: ['error', 'The login provider cannot be reached at the moment.', AGAIN],
  try_later: ['error', 'The server is too busy right now. Please wait a minute.', AGAIN],
  login_failed: ['error', 'The login did not work.', AGAIN],
}

/** Reads ?auth_error=…&flow=…&return_to=…, shows the failure, and removes the parameters from the address. */
export function showAuthError() {
  const url = new URL(location.href)
  const code = url.searchParams.get('auth_error')
  if (code === null) return
  const [kind, text, label] = Object.hasOwn(AUTH_ERRORS, code) ? AUTH_ERRORS[code] : AUTH_ERRORS.login_failed
  const signup = url.searchParams.get('flow') === 'signup' && code !== 'state_mismatch'
  const query = new URLSearchParams({ return_to: ownPath(url.searchParams.get('return_to')) })
  notice({ key: 'auth', kind, text, link: { href: `/auth/${signup ? 'signup' : 'login'}?${query}`, label } })
  for (const name of ['auth_error', 'flow', 'return_to']) url.searchParams.delete(name)
  history.replaceState(history.state, '', url.pathname + url.search + url.hash)
}

function ownPath(value) {
  if (value === null || !URL.canParse(value, location.origin)) return '/'
  const url = new URL(value, location.origin)
  return url.origin === location.origin ? url.pathname + url.search + url.hash : '/'
}
