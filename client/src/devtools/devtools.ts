import { refuseProduction } from '../core/base/production.ts'
import type { Debugged, DebugScope } from '../core/create-client.ts'
import { DevtoolsPanel, devtools } from './panel.ts'

refuseProduction('devtools', 'development')

const NAME = 'trading-bff-devtools'

declare global {
  interface HTMLElementTagNameMap {
    [NAME]: DevtoolsPanel
  }
}

const scope = globalThis as DebugScope & Partial<typeof globalThis>
// Not on a rendering server, and not a second time, as after a hot reload: the first copy sees every client.
if (scope.customElements && !scope.customElements.get(NAME)) {
  scope.customElements.define(NAME, DevtoolsPanel)
  const before = (scope.tradingBff ?? []) as readonly Debugged[]
  scope.tradingBff = { push: (entry) => devtools.add(entry) }
  for (const entry of before) devtools.add(entry)
}

export type { DevtoolsPanel }
