/** The Accounts and Wallets cards. Field names differ between services, so several are accepted. */
import { client } from './bff.js'
import { $, el, setText } from './dom.js'
import { explain, sentence } from './failures.js'
import { money, readable } from './format.js'
import { dismiss, notice } from './notices.js'
import { remember, remembered } from './remembered.js'
import { session } from './session.js'

const ACCOUNTS = '/trading/v1/options/accounts'

class Accounts extends EventTarget {
  chosen
  #list = []
  #turn = 0

  start() {
    $('#account-create').addEventListener('click', (event) => this.#create(event.currentTarget))
    session.addEventListener('change', () => this.#sessionChanged())
  }

  /** Shows a newer balance from the trading socket. */
  setBalance(id, balance) {
    const account = this.#list.find((item) => item.id === id)
    const cell = rowOf(id)?.querySelector('.amount')
    if (account === undefined || !cell) return
    account.balance = balance
    setText(cell, money(balance, account.currency))
  }

  async #sessionChanged() {
    this.#turn++
    this.#list = []
    this.#choose(undefined)
    $('#accounts').replaceChildren()
    $('#wallets').replaceChildren()
    if (session.state === 'authenticated') await Promise.all([this.#load(), this.#loadWallets()])
  }

  async #load() {
    const turn = this.#turn
    const content = await this.#fetch('#accounts', ACCOUNTS, 'The accounts could not be loaded.')
    if (content === undefined || turn !== this.#turn) return
    this.#list = records(content)
      .map(accountOf)
      .filter((account) => account.id !== undefined)
    const demos = this.#list.filter((account) => account.demo)
    const last = this.chosen?.id ?? remembered('account')
    this.#choose(demos.find(({ id }) => id === last) ?? demos[0])
    this.#draw()
  }

  async #loadWallets() {
    const turn = this.#turn
    const content = await this.#fetch('#wallets', '/wallet/v1/wallets', 'The wallets could not be loaded.')
    if (content === undefined || turn !== this.#turn) return
    const rows = records(content).map(walletRow)
    $('#wallets').replaceChildren(...(rows.length > 0 ? rows : [el('li', { class: 'empty' }, 'No wallets yet.')]))
  }

  async #fetch(list, path, what) {
    $(list).setAttribute('aria-busy', 'true')
    if ($(list).childElementCount === 0) $(list).append(el('li', { class: 'empty' }, 'Loading'))
    try {
      const response = await client.api(path)
      const content = await response.json()
      dismiss(what)
      return content
    } catch (error) {
      const forbidden = error.status === 403
      const text = forbidden ? await sentence(error) : what
      const again = !forbidden && retryButton(() => this.#sessionChanged())
      $(list).replaceChildren(el('li', { class: 'empty' }, `${text} `, again))
      if (!forbidden) await explain(error, what)
    } finally {
      $(list).setAttribute('aria-busy', 'false')
    }
  }

  #draw() {
    const rows = this.#list.map((account) => this.#row(account))
    $('#accounts').replaceChildren(
      ...(rows.length > 0 ? rows : [el('li', { class: 'empty' }, 'No accounts yet. Create a demo account to begin.')]),
    )
  }

  #row(account) {
    const { id, demo, balance, currency } = account
    const chosen = id === this.chosen?.id
    return el(
      'li',
      { class: 'row', 'data-testid': 'account-row', 'data-account-id': id, 'data-chosen': chosen },
      el('span', { class: 'badge', 'data-kind': demo ? 'demo' : 'real' }, demo ? 'Demo' : 'Real'),
      el('span', { class: 'mono grow' }, id),
      el('span', { class: 'amount' }, money(balance, currency)),
      el(
        'span',
        { class: 'row-actions' },
        chosen && el('span', { class: 'in-use', 'data-testid': 'account-in-use', tabindex: -1 }, 'In use'),
        demo &&
          !chosen &&
          el(
            'button',
            { type: 'button', class: 'button small', 'data-testid': 'account-use', onclick: () => this.#use(account) },
            'Trade with it',
          ),
        demo &&
          el(
            'button',
            {
              type: 'button',
              class: 'button small',
              'data-testid': 'account-reset',
              onclick: (event) => this.#reset(event.currentTarget, account),
            },
            'Reset balance',
          ),
        !demo && el('span', { class: 'fine' }, 'This demo trades demo accounts only.'),
      ),
    )
  }

  #use(account) {
    if (account.id === this.chosen?.id) return
    this.#choose(account)
    remember('account', account.id)
    this.#draw()
    // The button that had the focus has gone.
    rowOf(account.id)?.querySelector('.in-use').focus()
  }

  #choose(account) {
    const changed = account?.id !== this.chosen?.id
    this.chosen = account
    if (changed) this.dispatchEvent(new Event('change'))
  }

  async #create(button) {
    await this.#act(button, 'The account could not be created.', async () => {
      const json = { currency: 'USD', group: 'row', account_type: 'demo' }
      const content = await (await client.api(ACCOUNTS, { method: 'POST', json, idempotencyKey: true })).json()
      const id = accountOf(records(content)[0] ?? {}).id
      const known = this.#list.some((account) => account.id === id)
      const text = known ? `You already have the demo account ${id}.` : 'Your new demo account is ready.'
      notice({ key: 'account', kind: known ? 'info' : 'success', text, brief: true })
    })
  }

  async #reset(button, { id }) {
    await this.#act(button, `The balance of ${id} could not be reset.`, async () => {
      const path = `${ACCOUNTS}/${encodeURIComponent(id)}/reset-demo-balance`
      await client.api(path, { method: 'POST', idempotencyKey: true })
      notice({ key: 'account', kind: 'success', text: `The balance of ${id} was reset.`, brief: true })
    })
  }

  /** Runs an action once, and then reloads the list, which shows the actual state. */
  async #act(button, what, action) {
    button.disabled = true
    try {
      await action()
    } catch (error) {
      await explain(error, what, 'account')
    }
    button.disabled = false
    if (session.state !== 'authenticated') return
    await this.#load()
    if (document.activeElement !== document.body) return
    const row = button.closest('[data-account-id]')
    const again = row ? rowOf(row.dataset.accountId)?.querySelector(`[data-testid="${button.dataset.testid}"]`) : button
    again?.focus()
  }
}

export const accounts = new Accounts()

const rowOf = (id) => $(`#accounts [data-account-id="${CSS.escape(id)}"]`)
const retryButton = (onclick) => el('button', { type: 'button', class: 'button small', onclick }, 'Try again')

/** The records in `{data: […]}`, `{data: {…}}`, a bare array or a bare object. */
function records(content) {
  const data = content?.data ?? content
  if (Array.isArray(data)) return data
  return typeof data === 'object' && data !== null ? [data] : []
}

function accountOf(item) {
  const id = item.account_id ?? item.loginid ?? item.id
  const type = String(item.account_type ?? item.type ?? '').toLowerCase()
  return {
    id: id === undefined ? undefined : String(id),
    demo: type === 'demo' || item.is_virtual === true || item.is_virtual === 1,
    balance: item.balance?.amount ?? item.balance,
    currency: item.currency ?? item.currency_code ?? 'USD',
  }
}

function walletRow(item) {
  const currency = item.currency ?? item.currency_code ?? ''
  const name = item.wallet_type ?? item.type ?? item.name ?? 'Wallet'
  const id = item.wallet_id ?? item.id
  return el(
    'li',
    { class: 'row', 'data-testid': 'wallet-row' },
    el('span', { class: 'badge' }, readable(String(name))),
    el('span', { class: 'mono grow' }, id === undefined ? '' : String(id)),
    el('span', { class: 'amount' }, money(item.balance?.amount ?? item.balance, currency)),
  )
}
