/** Where a product comes from. Nothing is installed on this machine. */
export type Source =
  /** A package that this machine has. */
  | { readonly installed: string }
  /** Packages of a Debian suite, unpacked into a folder, and which of their programs a suite finds under which name. */
  | {
      readonly debian: 'bookworm' | 'trixie' | 'forky' | 'sid'
      readonly packages: readonly [string, ...string[]]
      readonly programs: Readonly<Record<string, string>>
    }
  /** A package of npm, with its version. */
  | { readonly npm: `${string}@${string}` }
  /** The folder of a package that the tests of this repository have. */
  | { readonly dependency: string }

/** One version of a product. */
export interface Row {
  /** Its name on the command line. */
  readonly id: string
  readonly product: string
  readonly from: Source
  /** The test files of each column; a missing column was not tried. */
  readonly suites: Readonly<Record<string, readonly string[]>>
  /** The names of the tests that count, where a file has those of other products; absent: all. */
  readonly only?: RegExp
  /** Variables that the suites read; `PROGRAMS` stands for the folder of the programs. */
  readonly environment?: Readonly<Record<string, string>>
  /** What is different, and what to set, for the page. */
  readonly note?: string
}

/** One table of the page. */
export interface Kind {
  readonly title: string
  /** What the columns mean, for the page. */
  readonly text: string
  readonly columns: readonly string[]
  readonly rows: readonly Row[]
}

/** The name of the Debian release with a suite's name, for the page. */
export const DEBIAN = {
  bookworm: 'Debian 12',
  trixie: 'Debian 13',
  forky: 'Debian testing',
  sid: 'Debian sid',
} as const
