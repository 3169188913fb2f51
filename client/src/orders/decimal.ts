/** A number of JavaScript has this many decimal digits that are certain. */
const DIGITS = 15

/**
 * A decimal number, written in one way: its digits without zeros at their ends, and its exponent. So `10`, `"10.00"` and `1e1` are
 * the same, and two numbers are not the same that a number of JavaScript cannot tell apart. Any other text stays as it is.
 */
export function decimal(value: unknown): string {
  const text = String(value).trim()
  const [, sign, whole = '', fraction = '', exponent = 0] = /^([-+]?)(\d*)\.?(\d*)(?:e([-+]?\d+))?$/i.exec(text) ?? []
  const digits = (whole + fraction).replace(/^0+/, '')
  if (whole + fraction === '') return text
  const significant = digits.replace(/0+$/, '')
  const shift = Number(exponent) - fraction.length + digits.length - significant.length
  return significant === '' ? '0' : `${sign === '-' ? '-' : ''}${significant}e${shift}`
}

/** Whether two things are the same: `maybe` where that cannot be told. */
export type Sameness = 'yes' | 'maybe' | 'no'

/** Compares two amounts, each a number or a text: `maybe` if they differ by no more than a rounding error of JavaScript. */
export function isSameAmount(one: unknown, other: unknown): Sameness {
  if (decimal(one) === decimal(other)) return 'yes'
  // A text is what somebody has written.
  if (typeof one === 'string' && typeof other === 'string') return 'no'
  return Number(one).toPrecision(DIGITS) === Number(other).toPrecision(DIGITS) ? 'maybe' : 'no'
}
