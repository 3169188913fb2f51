import { Type } from 'typebox'
import type { Message } from '../connection.ts'
import { one, operation, type Operation } from '../operation.ts'
import { SYMBOLS, type SymbolInfo } from '../symbols.ts'
import { instrumentOf } from '../terms.ts'

const CONTRACTS = [
  { contract_type: 'CALL', contract_display: 'Rise', sentiment: 'up' },
  { contract_type: 'PUT', contract_display: 'Fall', sentiment: 'down' },
] as const

const brief = Type.Optional(Type.Enum(['brief', 'full']))

/** The symbols, contract types and trading times. */
export const catalogueOperations: readonly Operation[] = [
  operation({
    name: 'active_symbols',
    properties: { active_symbols: Type.Enum(['brief', 'full']) },
    run: (request, connection) =>
      connection.respond(request, 'active_symbols', { active_symbols: SYMBOLS.map(symbolView) }),
  }),
  operation({
    name: 'contracts_for',
    properties: { contracts_for: Type.String(), currency: Type.Optional(Type.String()) },
    run(request, connection) {
      const { info, latest } = instrumentOf(request.contracts_for, connection.world.market)
      const available = CONTRACTS.map((contract) => ({ ...contract, ...contractView(info) }))
      connection.respond(request, 'contracts_for', {
        contracts_for: {
          available,
          hit_count: available.length,
          spot: latest.quote,
          feed_license: 'realtime',
        },
      })
    },
  }),
  operation({
    name: 'contracts_list',
    properties: { contracts_list: one, detail: brief },
    run: (request, connection) =>
      connection.respond(request, 'contracts_list', {
        contracts_list: [{ contract_category: 'callput', contract_types: CONTRACTS.map((it) => it.contract_type) }],
      }),
  }),
  operation({
    name: 'trading_times',
    properties: { trading_times: Type.String({ pattern: '^(today|[0-9]{4}-[0-9]{2}-[0-9]{2})$' }) },
    run(request, connection) {
      const symbols = SYMBOLS.map(({ code, name }) => ({
        name,
        underlying_symbol: code,
        times: { open: ['00:00:00'], close: ['23:59:59'], settlement: '23:59:59' },
      }))
      const submarkets = [{ name: 'Continuous Indices', symbols }]
      connection.respond(request, 'trading_times', {
        trading_times: { markets: [{ name: 'Derived', submarkets }] },
      })
    },
  }),
]

function symbolView({ code, name, pipSize }: SymbolInfo): Message {
  return {
    underlying_symbol: code,
    underlying_symbol_name: name,
    underlying_symbol_type: 'stockindex',
    market: 'synthetic_index',
    submarket: 'random_index',
    exchange_is_open: 1,
    is_trading_suspended: 0,
    pip_size: Number((10 ** -pipSize).toFixed(pipSize)),
  }
}

function contractView({ code }: SymbolInfo): Message {
  return {
    underlying_symbol: code,
    contract_category: 'callput',
    contract_category_display: 'Up/Down',
    barriers: 0,
    expiry_type: 'intraday',
    min_contract_duration: '1t',
    max_contract_duration: '1d',
    start_type: 'spot',
  }
}
