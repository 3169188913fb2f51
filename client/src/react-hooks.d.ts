/** The part of React that the adapter uses. Its types are not needed to build or to use the package. */
declare module 'react' {
  export function useEffect(effect: () => (() => void) | undefined, dependencies: readonly unknown[]): void
  export function useState<T>(initial: T): [T, (next: T) => void]
  export function useSyncExternalStore<T>(
    subscribe: (listener: () => void) => () => void,
    get: () => T,
    getOnServer: () => T,
  ): T
}
