/** A pattern for `t.match` of a list that has these items and no others. An array as a pattern fits longer lists as well. */
export function exactly(...items: readonly unknown[]): object {
  return Object.assign({}, items, { length: items.length })
}
