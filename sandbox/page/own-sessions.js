/** The Your sessions card: where the user is logged in, and a button that ends a session elsewhere. */
import { endSession, listSessions } from '/client/sessions.js'
import { client } from './bff.js'
import { $, el, setUsable } from './dom.js'
import { explain } from './failures.js'
import { moment } from './format.js'
import { dismiss, notice } from './notices.js'
import { session } from './session.js'

const FAILED = 'Your sessions could not be listed.'

/** Shows the list for the session that the page shows, and none for a user whom the server does not know. */
export function showOwnSessions() {
  session.addEventListener('change', load)
  $('#sessions-reload').addEventListener('click', load)
}

async function load() {
  const { tag, isKnown } = session
  const list = $('#sessions')
  $('.card-sessions').hidden = !isKnown
  // Nothing of the user before may stay.
  if (list.dataset.of !== tag) list.replaceChildren()
  list.dataset.of = tag ?? ''
  if (!isKnown) return
  list.setAttribute('aria-busy', 'true')
  try {
    const sessions = await listSessions(client)
    // Meanwhile another session may have begun.
    if (session.tag !== tag) return
    dismiss(FAILED)
    list.replaceChildren(...sessions.map(row))
    session.showOthers(sessions.filter(({ isCurrent }) => !isCurrent).length)
  } catch (error) {
    if (session.tag === tag) await explain(error, FAILED)
  } finally {
    list.setAttribute('aria-busy', 'false')
  }
}

function row({ tag, isCurrent, device = 'Unknown browser', startedAt, lastUsedAt }) {
  const used = lastUsedAt === undefined ? '' : `, last used ${moment(lastUsedAt)}`
  const attributes = { type: 'button', class: 'button small', 'data-testid': 'session-end' }
  const name = `End the session of ${device}, logged in ${moment(startedAt)}`
  return el(
    'li',
    { class: 'row', 'data-testid': 'session-row', 'data-current': String(isCurrent) },
    el(
      'span',
      { class: 'grow' },
      el('strong', {}, device),
      el('span', { class: 'fine times' }, `Logged in ${moment(startedAt)}${used}`),
    ),
    isCurrent
      ? el('span', { class: 'badge', 'data-kind': 'demo' }, 'This browser')
      : el('button', { ...attributes, 'aria-label': name, onclick: ({ target }) => end(target, tag) }, 'End'),
  )
}

async function end(button, tag) {
  if (button.ariaDisabled === 'true') return
  setUsable(button, false)
  try {
    await endSession(client, tag)
    notice({ key: 'session-end', kind: 'success', text: 'That session has ended.', brief: true })
    // The button with the focus goes.
    $('#sessions-title').focus()
    await load()
  } catch (error) {
    setUsable(button, true)
    await explain(error, 'That session may still go on.', 'session-end')
  }
}
