/** A tab in which the browser package runs, and what may happen to it. */
export interface BrowserTab {
  readonly user: string
  /** Whether an order of its page is under way. */
  readonly isBusy: boolean
  /** Its page is loaded again. Whatever it waited for is lost, and the storage of the tab is kept. */
  readonly reload: () => Promise<void>
  /** Its scripts and timers stand still. @returns ends that */
  readonly freeze: () => () => void
  /** Nothing passes between it and the servers. @param isNoticed whether the browser knows @returns ends that */
  readonly disconnect: (isNoticed: boolean) => () => void
}
