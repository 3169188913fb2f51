/**
 * A decimal number, written in one way: its digits without zeros at their ends, and its exponent. So `10`, `"10.00"` and `1e1` are
 * the same, and two numbers are not the same that a number of JavaScript cannot tell apart. Any other text stays as it is.
 */
export declare function decimal(value: unknown): string;
/** Whether two things are the same: `maybe` where that cannot be told. */
export type Sameness = 'yes' | 'maybe' | 'no';
/** Compares two amounts, each a number or a text: `maybe` if they differ by no more than a rounding error of JavaScript. */
export declare function isSameAmount(one: unknown, other: unknown): Sameness;
