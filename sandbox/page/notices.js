/**
 * Messages, one line per subject, newest last: those of orders beside the form, all others at the top of the page. Also
 * explains a failed login, by the query of the page.
 */
import { client } from './bff.js'
import { $, el } from './dom.js'

const SHORT_MS = 10_000

/**
 * Shows a message. It replaces an earlier one with the same key.
 * @param area - `messages` at the top of the page, or `trade-messages` beside the form, where no message covers a button
 * @param action - a button: { label, run }
 */
export function notice({ key, kind = 'info', text, link, action, requestId, brief = false, area = 'messages' }) {
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
    action && el('button', { type: 'button', class: 'button small', onclick: action.run }, action.label),
    el('button', { type: 'button', class: 'close', 'aria-label': 'Dismiss message', onclick: () => box.remove() }, '×'),
  )
  $(`#${area}`).append(box)
  if (brief) setTimeout(() => box.remove(), SHORT_MS)
}

/** Removes the message with this key. @returns whether there was one */
export function dismiss(key) {
  const boxes = [...document.querySelectorAll('.notice')].filter((box) => box.dataset.key === key)
  for (const box of boxes) box.remove()
  return boxes.length > 0
}

/** Shows what the operator tells all users, for as long as it is so. */
export function followNotice() {
  let shown
  client.session.subscribe(() => {
    const { message } = client.session.get().notice ?? {}
    if (message === shown) return
    shown = message
    if (message === undefined) dismiss('operator')
    else notice({ key: 'operator', text: message })
  })
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

const NO_COOKIES =
  'This browser refuses the cookies of a login, so nobody can log in with it. Allow cookies for this site.' +
  (location.protocol === 'http:'
    ? ' Safari refuses them at http://localhost: start the demo with DEV_INSECURE_COOKIES=true.'
    : '')

/** Whether this browser keeps no cookie that is marked as Secure, as those of a login are. */
function refusesCookies() {
  document.cookie = 'probe=1; Secure'
  const isKept = document.cookie.includes('probe=1')
  document.cookie = 'probe=; Secure; Max-Age=0'
  return !isKept
}

/** Says why the last login failed, if it did. */
export function showAuthError() {
  const failed = client.session.takeAuthError()
  if (!failed) return
  const { code, againUrl, loginUrl } = failed
  const known = Object.hasOwn(AUTH_ERRORS, code) ? AUTH_ERRORS[code] : AUTH_ERRORS.login_failed
  const [kind, text, label] = code === 'state_mismatch' && refusesCookies() ? ['error', NO_COOKIES, AGAIN] : known
  // The sign-up of a mismatch may have succeeded elsewhere.
  const href = code === 'state_mismatch' ? loginUrl : againUrl
  notice({ key: 'auth', kind, text, link: { href, label } })
}
