import { type Static, Type } from 'typebox'
import { cents } from './accounts.ts'
import type { Instrument, Market } from './market.ts'
import { Refusal } from './refusal.ts'

/** The properties that describe a contract in a proposal, a purchase by parameters and a bulk purchase. */
export const contractProperties = {
  amount: Type.Number({ exclusiveMinimum: 0 }),
  basis: Type.Enum(['stake', 'payout']),
  contract_type: Type.Enum(['CALL', 'PUT']),
  currency: Type.String({ pattern: '^[A-Z]{3}$' }),
  underlying_symbol: Type.String({ maxLength: 30 }),
  duration: Type.Integer({ minimum: 1, maximum: 86_400 }),
  duration_unit: Type.Enum(['t', 's', 'm']),
}

const contractSchema = Type.Object(contractProperties)
export type ContractProperties = Static<typeof contractSchema>

/** The payout divided by the stake: a stake of 10 wins 18.18. */
const RETURN = 1.818
const MIN_STAKE = 0.35
const MAX_PAYOUT = 10_000
const MAX_TICKS = 10

const UNITS = { t: 'tick', s: 'second', m: 'minute' } as const

/** The terms of a contract that can be bought. */
export interface Terms {
  instrument: Instrument
  type: 'CALL' | 'PUT'
  currency: string
  stake: number
  payout: number
  /** The duration. */
  length: { ticks: number } | { seconds: number }
  longcode: string
}

/** Computes stake and payout. @throws Refusal if the symbol, the amount or the duration is not on offer */
export function termsOf(request: ContractProperties, market: Market): Terms {
  const instrument = instrumentOf(request.underlying_symbol, market)
  const { amount, basis, duration, duration_unit: unit } = request
  const stake = cents(basis === 'stake' ? amount : amount / RETURN)
  const payout = cents(basis === 'stake' ? amount * RETURN : amount)
  if (stake < MIN_STAKE || payout > MAX_PAYOUT)
    throw notOnOffer(`Minimum stake of ${MIN_STAKE} and maximum payout of ${MAX_PAYOUT}.00.`)
  if (unit === 't' && duration > MAX_TICKS) throw notOnOffer(`Number of ticks must be between 1 and ${MAX_TICKS}.`)
  const direction = request.contract_type === 'CALL' ? 'higher' : 'lower'
  const period = `${duration} ${UNITS[unit]}${duration === 1 ? '' : 's'}`
  return {
    instrument,
    type: request.contract_type,
    currency: request.currency,
    stake,
    payout,
    length: unit === 't' ? { ticks: duration } : { seconds: duration * (unit === 'm' ? 60 : 1) },
    longcode: `Win payout if ${instrument.info.name} is strictly ${direction} than entry spot at ${period} after contract start time.`,
  }
}

/** @throws Refusal if there is no such symbol */
export function instrumentOf(code: string, market: Market): Instrument {
  const instrument = market.instrument(code)
  if (!instrument) throw new Refusal('InvalidSymbol', `Symbol ${code} is invalid.`)
  return instrument
}

/** The duration in seconds; an estimate if it is in ticks. */
export function expectedSeconds({ length }: Terms, tickMs: number): number {
  return 'ticks' in length ? Math.ceil((length.ticks * tickMs) / 1000) : length.seconds
}

/** The terms in the format of `proposal`. */
export function proposalView(terms: Terms, id: string, tickMs: number): Record<string, unknown> {
  const { epoch, quote } = terms.instrument.latest
  return {
    id,
    ask_price: terms.stake,
    payout: terms.payout,
    spot: quote,
    spot_time: epoch,
    date_start: epoch,
    date_expiry: epoch + expectedSeconds(terms, tickMs),
    longcode: terms.longcode,
    validation_params: {
      payout: { max: MAX_PAYOUT.toFixed(2) },
      stake: { min: MIN_STAKE.toFixed(2) },
    },
  }
}

function notOnOffer(message: string): Refusal {
  return new Refusal('ContractBuyValidationError', message)
}
