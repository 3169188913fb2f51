/** An invented index that is always open and does not depend on real markets. */
export interface SymbolInfo {
  code: string
  name: string
  /** The number of decimal places of a quote. */
  pipSize: number
  /** The first quote of the random walk. */
  start: number
  /** Yearly volatility; 1 is 100 %. */
  volatility: number
}

export const SYMBOLS: readonly SymbolInfo[] = [
  { code: 'R_10', name: 'Volatility 10 Index', pipSize: 3, start: 6312.415, volatility: 0.1 },
  { code: 'R_25', name: 'Volatility 25 Index', pipSize: 3, start: 2741.318, volatility: 0.25 },
  { code: 'R_50', name: 'Volatility 50 Index', pipSize: 4, start: 118.4521, volatility: 0.5 },
  { code: 'R_75', name: 'Volatility 75 Index', pipSize: 4, start: 41250.1234, volatility: 0.75 },
  { code: 'R_100', name: 'Volatility 100 Index', pipSize: 2, start: 842.28, volatility: 1 },
  { code: '1HZ10V', name: 'Volatility 10 (1s) Index', pipSize: 2, start: 9120.55, volatility: 0.1 },
  { code: '1HZ100V', name: 'Volatility 100 (1s) Index', pipSize: 2, start: 1430.11, volatility: 1 },
]
