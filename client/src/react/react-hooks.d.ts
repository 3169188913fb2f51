/** The hooks that the adapter uses. These types stand in for `@types/react`, which the package therefore does not need. */
declare module 'react' {
  export function useCallback<F>(callback: F, dependencies: readonly unknown[]): F
  export function useEffect(effect: () => (() => void) | undefined, dependencies: readonly unknown[]): void
  export function useEffect(effect: () => void): void
  export function useLayoutEffect(effect: () => void): void
  export function useState<T>(initial: T): [T, (next: T | ((before: T) => T)) => void]
  export function useSyncExternalStore<T>(
    subscribe: (listener: () => void) => () => void,
    get: () => T,
    getOnServer: () => T,
  ): T
}
