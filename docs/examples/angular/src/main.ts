import { Component, DestroyRef, inject, resource, signal } from '@angular/core'
import { bootstrapApplication } from '@angular/platform-browser'
import { createClient, sessionKey } from 'trading-bff-client'

const client = createClient()
const market = client.publicSocket()

@Component({
  selector: 'body',
  template: `
    @if (session().status === 'anonymous') {
      <a [href]="client.session.loginUrl()">Log in</a>
    } @else if (session().status === 'active') {
      <button (click)="logOut()">Log out</button>
    }
    <ul>
      @for (each of accounts.hasValue() ? accounts.value().data : []; track each.account_id) {
        <li>{{ each.account_id }}: {{ each.balance }} {{ each.currency }}</li>
      }
    </ul>
    <output>{{ price() }}</output> <b role="status">{{ accounts.error()?.message }}</b>
  `,
})
class App {
  readonly client = client
  readonly logOut = () => client.logout().catch(() => alert('You may still be logged in. Please try again.'))
  readonly price = signal<number | undefined>(undefined)
  readonly session = signal(client.session.get())
  readonly accounts = resource({
    params: () => sessionKey(this.session()),
    loader: async ({ abortSignal: signal }) => (await client.api('/trading/v1/options/accounts', { signal })).json(),
  })

  constructor() {
    inject(DestroyRef).onDestroy(client.session.subscribe(() => this.session.set(client.session.get())))
    inject(DestroyRef).onDestroy(market.subscribe({ ticks: 'R_100' }, ({ tick }) => this.price.set(tick.quote)))
  }
}

await bootstrapApplication(App)
